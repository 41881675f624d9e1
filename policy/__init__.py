"""Floor 1: what may run. Pure: no processes, no event loop; every decision can be tested without doing anything.

Rooms: verdict, rules, shell, words, unwrap, hidden, targets, danger, confirm, safe, paths, mode, hooks, redact, gate.
"""
