"""Floor 7: the command line and the composition root.

Rooms: entry (the console script), main (the root command), project (what every command opens first), wiring (the object graph),
run (`-p`), swarm, worktrees, config, agents, models, tools, policy, doctor.
"""
