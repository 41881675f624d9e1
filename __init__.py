"""OpenDev: a terminal coding agent that is a multi-process actor system."""

__version__ = "0.1.0"
