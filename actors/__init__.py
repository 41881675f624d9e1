"""Actors: the hub, its rooms, the workers and the two runtimes; Ray enters by one door.

Driver side: hub (runs, watches, ends agents; routes mail), sides (where agents may run), runs (one agent's run), broker (sub-agents), isolation
(their folders), fence (which refs an agent may move), pool (worker hosts), permits, asks (questions to people), audit (decisions on record), postroom (all mail), eventlog (numbered events), inbox (reports on disk),
board (claims, and notes to agents at work), spending (what one run takes of a session's ledger), titles, hooks (the user's commands around sessions, prompts and sub-agents).
In the actors: worker, servers (the MCP servers of its process), uplink, outbox, main (the mailbox), compactor, model_service (its notices are fetched by notices). Runtimes: runtime, local_runtime, ray_runtime,
ray_session, cluster (joining one), warm and warm_keeper (a private one between runs). After a death: janitor, janitor_pipe. state/: pure state machines.
"""
