"""Running commands: process (the Shell port), environment (of a child), pump (reads its output), output (bounded, cleaned text),
reap (find and end processes), background (tasks on terminals of their own), rolling (their output files), servers (which commands
go to the background), sandbox (what confines them), places (where they may write), landlock (the launcher that gives up rights).
"""
