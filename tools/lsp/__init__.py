"""Language servers: symbols (the Symbols port), pool (one server for each root and language), server (the wrapper), client
(JSON-RPC over stdio), servers (the table), answers, cache, bodies, positions, words."""
