"""Running commands: process (the Shell port), environment (of a child), pump (reads its output), output (bounded, cleaned text),
reap (find and end processes).
"""
