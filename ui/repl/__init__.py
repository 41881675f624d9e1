"""The line REPL: ports (what it needs of the conversation), and the screen, keys and menus that draw and ask."""
