"""Identifiers: short, random, safe in file names, branch names and command lines."""

import secrets

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_id(length: int = 12) -> str:
    """A random identifier of ``length`` lower-case letters and digits, starting with a letter."""
    first = secrets.choice(_ALPHABET[:26])
    return first + "".join(secrets.choice(_ALPHABET) for _ in range(length - 1))
