"""Names of MCP tools: ``mcp__server__tool``, at most 64 characters, distinct and stable whatever the servers call them (X08)."""

import hashlib
import re

PREFIX = "mcp__"
MAX_CHARS = 64
_ODD = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH = 8  # hex digits


def qualified(server: str, tool: str) -> str:
    """The name by which the model calls ``tool`` of ``server``; matches ``^[a-zA-Z0-9_-]{1,64}$``.

    The plain form is used where it says exactly which tool is meant; every other name ends in a hash of both original names,
    so that cutting or cleaning never makes two tools equal, and no name depends on what else there is.
    """
    plain = f"{PREFIX}{server}__{tool}"
    if _exact(server, tool) and len(plain) <= MAX_CHARS:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    front = f"{PREFIX}{_ODD.sub('_', server)[:24]}__{_ODD.sub('_', tool)}"
    return f"{front[: MAX_CHARS - _HASH - 1]}_{mark}"


def server_of(name: str) -> str:
    """The (cleaned) server in a qualified name; empty for another name."""
    return name.removeprefix(PREFIX).partition("__")[0] if name.startswith(PREFIX) else ""


def _exact(server: str, tool: str) -> bool:
    clean = bool(server) and bool(tool) and not _ODD.search(server + tool)
    # with these two rules the first double underscore after the prefix always parts server and tool
    return clean and "__" not in server and not server.endswith("_") and not tool.startswith("_")
