"""Floor 1: state on disk. Plain files only (CFG-08).

Rooms: atomic (lock, temp + rename, JSON lines), layout (where everything lives), plans (plan files and their index), sessions (a project's:
start, list, resume, delete) with session_files (record and transcript of one), session_index and records (a line of a transcript), consent (what the user agreed to of a project), plugins (installed folders of agents, skills and commands), permissions (rules on calls), history (decisions about calls), oplog (what file tools wrote), undo_steps (the steps of a session), typed (what was typed in the REPL).
"""
