"""Floor 1: what may run. Pure: no processes, no event loop; every decision can be tested without doing anything.

Reading a command line: shell, syntax, words, unwrap, wrappers, interpreters, code, hidden, targets. Judging it: danger (the hard
floor), confirm, gitwork, programs, variables, safe, rules. Calls: gate, verdict, mode, paths, secrets, gitconfig, permissions (rules
on calls), grants (what an answer allows), hooks. What is shown: redact, visible.
"""
