"""Files that hold secrets: no tool reads them and no command is handed them, under whatever name (SAF-04, SAF-06, T04, T18)."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from glob import iglob
from itertools import islice
from pathlib import Path

from pathspec import GitIgnoreSpec

from .paths import folded
from .shell import Simple, parsed
from .unwrap import layers
from .verdict import Verdict, allow, deny
from .words import Word

_MAX_COMMANDS = 2_000
_MAX_GLOB = 1_000  # files that one wildcard is followed to
# They print what they are given, or look at a name without opening the file.
_NO_READERS = frozenset(
    ["", "echo", "printf", "ls", "stat", "test", "[", "[[", "touch", "mkdir", "rm", "rmdir", "unlink", "chmod", "chown", "find",
     "cd", "pushd", "which", "type", "basename", "dirname", "realpath", "readlink", "shred", "true", ":"]
)  # fmt: skip
_PATTERN_FIRST = frozenset(["grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "jq", "yq"])
_MAX_ENV_FILES, _MAX_ENV_BYTES = 20, 64_000
_MIN_VALUE = 8  # shorter ones would blot out ordinary words
_VALUE = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w{0,100})[ \t]*=[ \t]*([^\r\n#]{1,4000})")
_PLAIN = re.compile(
    r"(?:[A-Za-z]+|[\d.]+)$|[/$]|\./|https?://[^@]*$"
)  # words, numbers, places: they stand elsewhere too
_SECRET_NAME = re.compile(r"(?i)key|secret|token|passw|passphrase|credential|private|_pat$|_pwd$|auth")
_BY_NAME = frozenset(["xargs", "parallel"])  # they get the names on standard input
_GIT_NAMES_ONLY = frozenset(
    ["add", "rm", "mv", "check-ignore", "ls-files", "status", "commit", "clean", "restore"]
)
_PIECES = re.compile(r"""[\s=:@,;|&<>()\[\]{}'"`]+""")


@lru_cache(maxsize=16)
def secrets_of(patterns: tuple[str, ...]) -> "Secrets":
    """The rule of these patterns, compiled once."""
    return Secrets(patterns)


def values_in(root: Path) -> tuple[str, ...]:
    """The values of secret variables in the ``.env`` files of a folder, the longest first; they go from every output. Blocking."""
    found: set[str] = set()
    for path in islice(sorted(root.glob(".env*")), _MAX_ENV_FILES):
        try:
            lines = path.read_bytes()[:_MAX_ENV_BYTES].decode("utf-8", "replace") if path.is_file() else ""
        except OSError:
            continue
        for match in _VALUE.finditer(lines):
            value = match[2].strip().strip("\"'")
            if _SECRET_NAME.search(match[1]) and len(value) >= _MIN_VALUE and not _PLAIN.match(value):
                found.add(value)
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


class Secrets:
    """Patterns as in a ``.gitignore``: case is ignored, a later one wins, ``!`` takes back."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._spec = GitIgnoreSpec.from_lines(pattern.casefold() for pattern in patterns)
        self.match = lru_cache(maxsize=4_096)(self._match)  # each call asks at least twice

    def _match(self, name: str) -> bool:
        """Whether ``name``, relative to the root or absolute, ``/`` separated, is such a file or lies in such a folder."""
        parts = [folded(part) for part in name.split("/")]
        return self._spec.match_file("/".join(part for part in parts if part))

    def holds(self, path: Path, root: Path) -> bool:
        """The same for an absolute path, by its name below ``root`` and, when it is a link, by what it leads to."""
        names = {_below(str(found), str(root)) for found in (path, os.path.realpath(path))}
        return any(self.match(name) for name in names)

    def judge_command(self, command: str, root: Path, cwd: Path | None = None) -> Verdict:
        """Deny a command line that hands such a file, or a link to one, to a program. Only names are read.

        A name that a script puts together while it runs is not seen: what a command prints is redacted on top of this.
        """
        script = parsed(command, str(cwd or root))
        for item, _ in islice(layers(script), _MAX_COMMANDS):
            for word in _handed_over(item):
                if any(self.holds(path, root) for path in _files(word, item.cwd)):
                    return deny("secrets", f"{word.text[:200]} is read by nothing here (setting deny_read).")
        return allow("secrets")


def _handed_over(item: Simple) -> Iterator[Word]:
    """The words of which the program may open a file of that name."""
    yield from (r.target for r in item.redirects if r.target is not None and r.operator.startswith("<"))
    yield from (Word(r.text) for r in item.redirects if r.operator == "<<<" and item.name in _BY_NAME)
    words = list(item.args)
    if item.name in _NO_READERS and not any(word.text.startswith(("-exec", "-ok")) for word in words):
        return
    if item.name in _BY_NAME:
        yield from (word for other in item.upstream for word in other.args)
    if any(not word.static for word in words):
        yield from (word for other in item.nested for word in other.args)
    plain = [word for word in words if not word.text.startswith("-")]
    if item.name == "git" and plain and plain[0].text in _GIT_NAMES_ONLY:
        return
    if item.name in _PATTERN_FIRST and not any(
        w.text.startswith(("-e", "-f", "--regexp", "--file")) for w in words
    ):
        words = [word for word in words if word is not plain[0]] if plain else words
    if item.name in ("cp", "mv", "install", "ln") and len(plain) > 1:
        words.remove(plain[-1])  # it is written, which is judged elsewhere
    yield from words


def _files(word: Word, cwd: str | None) -> Iterator[Path]:
    """The paths that a word may mean: itself, names inside of it (options, ``REV:path``, code), what its wildcards match."""
    if not word.static or "\0" in word.text or len(word.text) > 4_096:
        return
    folder = Path(cwd or "/")
    yield folder / word.text
    for piece in _PIECES.split(word.text):
        if piece and piece != word.text and (os.path.lexists(folder / piece) or f":{piece}" in word.text):
            yield folder / piece
    if word.glob:
        yield from (folder / name for name in islice(_expanded(word.text, folder), _MAX_GLOB))


def _expanded(pattern: str, folder: Path) -> Iterator[str]:
    return iglob(pattern, root_dir=folder)  # noqa: PTH207 - as the shell does: a wildcard matches no leading dot


def _below(path: str, root: str) -> str:
    folded = os.path.normpath(path)
    top = root.rstrip("/") + "/"
    return folded[len(top) :] if folded.startswith(top) else folded
