"""Floor 1: configuration.

Rooms: schema (AppConfig), load (four layers and the command line; the only reader of the environment), environment (what it says),
explain (which layer set a key), set_value (change a settings file). Data: defaults.toml, models.toml, agents/*.toml.
"""
