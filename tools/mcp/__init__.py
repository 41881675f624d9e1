"""MCP servers as tools: config, names, schemas, stdio (the process), client and oauth (the SDK's two doors), logins and loopback (a
person's login), sifted (pages looked through first), link, manager, remote, directory, early.
"""
