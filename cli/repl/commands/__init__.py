"""The nine handlers of slash commands, one a subject (REPL-03)."""
