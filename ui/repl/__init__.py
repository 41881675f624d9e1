"""The line REPL: what it needs of a conversation, and the screen that draws it and asks.

Rooms: ports (the conversation), screen (the tasks and what keys do), layout (the rows at the bottom), keys (which key does what), state (what Esc, Ctrl-C
and Ctrl-D stop), dialogs (approvals, plans, questions), feed (events as blocks), stream (an answer in finished pieces), paint and markdown (blocks as text), printer (above the prompt),
live (what moves above the prompt), complete (commands and files), terminal (what it can do), plain (whole lines, where the cursor cannot move).
"""
