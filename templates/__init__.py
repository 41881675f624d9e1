"""Floor 2: prompts and texts as data; read by context, agents, tools and swarm. Nothing is imported from here."""
