"""Which commands are servers and go to the background: the 16 patterns of Catalogue S, verbatim (SHL-04)."""

import re

# Some are broad (`pip install uvicorn` fits): a command that ends during its start-up capture returns as if in front (T-06).
SERVER_PATTERNS = (
    r"flask\s+run",
    r"python.*app\.py",
    r"python.*manage\.py\s+runserver",
    r"django.*runserver",
    r"uvicorn",
    r"gunicorn",
    r"python.*-m\s+http\.server",
    r"npm\s+(run\s+)?(start|dev|serve)",
    r"yarn\s+(run\s+)?(start|dev|serve)",
    r"node.*server",
    r"nodemon",
    r"next\s+(dev|start)",
    r"rails\s+server",
    r"php.*artisan\s+serve",
    r"hugo\s+server",
    r"jekyll\s+serve",
)
_SERVERS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in SERVER_PATTERNS)


def is_server(command: str) -> bool:
    """Whether one of the patterns occurs anywhere in ``command``."""
    return any(pattern.search(command) for pattern in _SERVERS)
