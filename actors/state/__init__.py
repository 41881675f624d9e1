"""Pure state machines of the hub: event in, new state and commands out. Rooms: approvals, board, fanout, supervision."""
