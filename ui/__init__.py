"""Floor 6: draws events and reports; knows no agent and asks nothing.

Rooms: approval (card and menu), board (the state of a batch on one screen), headless (JSON lines), lines (an event as a line), repl (the conversation on a terminal), session_export, terminal (live view, plain lines).
"""
