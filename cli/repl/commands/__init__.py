"""The nine handlers of slash commands, one a subject (REPL-03).

Rooms: session, mode, config, mcp, agents, skills, plugins, tools, help.
"""
