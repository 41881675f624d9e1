"""Floor 5: batch runs: tickets in, verified commits on an integration branch and one report out (SWM).

Rooms: attempt (one try of a ticket), books (what was done and spent), control (a run seen from another process), crew (running agents),
demo, globs (do scopes meet), history (read-only git questions), journal (durable steps), landing (the merge train as used here),
locate (lines of ticket files), plan (waves, overlaps, cost), planner (a goal into a ticket file), ports (what a run is given), preflight, prompts, provision (files and
set-up of worktrees), recover (a journal folded), report, review (verdicts), run (the driver), schedule (pure state machine),
takeover (what stands at the start), tickets (reading ticket files), verify (clean checkouts, baseline, flaky re-runs).
"""
