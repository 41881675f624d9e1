"""Floor 7: the command line and the composition root.

Rooms: entry (the console script), main (the root command), lazy (imports a sub-command when it is called), project (what every
command opens first), wiring (the object graph), catalogue (when knowledge about models is fetched), stdio (where output goes), unstarted (the JSON of a command that did not begin), border (defects become errors), signals (an
orderly stop), run (`-p`) with task (of the main agent) and held (the session it works in), repl (the conversation), sessions, undo, swarm (the group) with batch (runs one) and planning (makes a ticket file), worktrees, config with config_check, agents, models, runtime, tools, policy, doctor, skills, hooks, mcp with mcp_serve (OpenDev as a server) and mcp_login, extensions (servers, skills and hooks of every agent).
"""
