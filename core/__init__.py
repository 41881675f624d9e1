"""Floor 0: the nouns, unions and Protocols every other room speaks in. No I/O.

Rooms: agent, approval, chat, clock, errors, events, exits, hooks, ids, interrupt, lease, mail, model, ops, permissions, ports, prompts, scope, session, ticket, tool, undo.
"""
