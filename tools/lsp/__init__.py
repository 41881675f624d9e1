"""Language servers: symbols (the Symbols port), client (JSON-RPC over stdio), servers (the table), positions, words."""
