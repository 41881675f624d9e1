"""Agents: the loop and agent data. Knows no Ray, no LiteLLM, no user interface.

Rooms: base (abstract agent and its Protocol), main_agent (the one concrete class), factory, subagents, specs (agent types as data), custom (the user's own types, each read by agent_file),
settings, assembly (what one run needs), container (commands in Docker), opening and references (what stands in front of a query), react (the loop), iteration (the state of a run), calling (one model call or thought), completion,
sight (asks the vision model), signals (detectors between tools and the next call), children (background sub-agents), planning (routing, plan files),
doomloop, recovery, escalation (to a stronger model), verifier, inbox, survey (Ask-User), cover (records what a step changes) and undo (takes it back), summing_up (`/compact` between two turns), transcript, resume (what a session gives back), report, stages/ (the six stages of an iteration).
Memory beside the loop: memory (summary for thinking, playbook), learning (reflector and curator), standing (what no summary holds).
"""
