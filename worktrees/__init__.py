"""Floor 1: git worktrees. One keeper hands out folders, one train lands them; the user's checkout is never touched.

Rooms: branches, bundle, checkout, doctor, git, journal, keeper, names, repository, snapshot, threads, train.
"""
