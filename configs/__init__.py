"""Floor 1: configuration.

Rooms: schema (AppConfig), settings_file (reads one, strictly), layers (what each says, by dotted key), load (they become one; the only
reader of the environment), environment (what it says), check with problem (everything that is wrong), explain (which layer set a key),
set_value (change a settings file), published (schema and table for people and editors). Data: defaults.toml, models.toml, agents/*.toml.
"""
