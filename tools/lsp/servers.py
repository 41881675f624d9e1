"""Which language server serves which files, as data; a new language is one more row (SYM-03, SYM-04)."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ...core.model import JsonObject


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """``user`` commands are looked up on the environment's PATH and come first; ``bundled`` ones stand beside our Python."""

    language: str
    suffixes: frozenset[str]
    user: tuple[str, ...]
    bundled: tuple[str, ...]
    arguments: tuple[str, ...]
    install: str
    settings: JsonObject = field(default_factory=dict[str, object])


_ANALYSIS: JsonObject = {
    "diagnosticMode": "openFilesOnly",
    "typeCheckingMode": "off",
    "autoSearchPaths": True,
    "useLibraryCodeForTypes": False,
    "indexing": False,
    "exclude": ["**/node_modules", "**/__pycache__", "**/.*"],
}

SERVERS: tuple[ServerSpec, ...] = (
    ServerSpec(
        language="python",
        suffixes=frozenset({".py", ".pyi"}),
        user=("pyright-langserver",),
        bundled=("basedpyright-langserver",),
        arguments=("--stdio",),
        install="pip install basedpyright",
        settings={
            "python": {"analysis": _ANALYSIS},
            "python.analysis": _ANALYSIS,
            "basedpyright": {"analysis": _ANALYSIS, "disableOrganizeImports": True},
            "basedpyright.analysis": _ANALYSIS,
        },
    ),
)


def server_for(path: str) -> ServerSpec | None:
    """The server of a file, by its extension."""
    suffix = PurePosixPath(path).suffix.lower()
    return next((one for one in SERVERS if suffix in one.suffixes), None)
