"""Running commands: process (the Shell port), output (bounded, cleaned text), reap (find and end processes)."""
