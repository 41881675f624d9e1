"""Floor 1: git worktrees. One keeper hands out folders, one train lands them; the user's checkout is never touched.

Rooms: branches, bundle, checkout, doctor, git, journal, keeper, names, repository, snapshot, threads, train.
Undo beside them: undo_store (shadow repository), undo_scan (what changed), undo_plan (three-way), undo_files, undo_apply (all or nothing, journal).
"""
