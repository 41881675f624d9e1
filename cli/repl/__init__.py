"""The interactive conversation: managers, the room of one session, the controller, slash commands and their handlers."""
