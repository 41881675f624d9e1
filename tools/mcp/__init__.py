"""MCP servers as tools: config, names, schemas, stdio (the process), client (the SDK's one door), link, manager, remote, directory, early."""
