"""The interactive conversation (REPL-01..07).

Rooms: start (`opendev` on a terminal), controller (the conversation: lines in, events out), turns (the query processor), room (one session at work), managers (settings,
session, mode and approvals, shared by all), fan (events for the screens), figures (cost, context, agents and tasks for the prompt line), mentions (files for `@`), dispatch (which
line is a command), base (of the handlers), custom (the user's own commands), undoing (undo, redo, diff), recall (the last words of a session), tasks (background commands), files (new agents and skills).
"""
