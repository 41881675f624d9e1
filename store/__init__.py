"""Floor 1: state on disk. Plain files only (CFG-08).

Rooms: atomic (lock, temp + rename, JSON lines), layout (where everything lives).
"""
