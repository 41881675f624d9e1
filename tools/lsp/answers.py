"""A server's answers as our own values: symbols, references, edits and problems, columns in code points."""

import re
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ...core.ports import CodeProblem, SymbolPlace, SymbolUse, TextEdit
from . import positions
from .words import text_of

BODY_CHARS = 200
MAX_PROBLEMS = 20
_ERROR = 1
_KINDS = (  # the protocol's numbers, from 1
    "file module namespace package class method property field constructor enum interface function variable constant "
    "string number boolean array object key null enum-member struct event operator type-parameter"
)
_GO_METHOD = re.compile(r"\(\*?(\w+)\)\.(\w+)")


def places(symbols: list[JsonObject], path: str, text: str, encoding: str) -> tuple[SymbolPlace, ...]:
    """The tree of symbols, flattened; iterative, for its depth is the file's. Flat answers (old servers) are read too."""
    rows, found = positions.lines(text), list[SymbolPlace]()
    pending = [(symbol, str(symbol.get("containerName") or "")) for symbol in reversed(symbols)]
    while pending:
        symbol, above = pending.pop()
        local = _local(symbol["name"])
        name_path = f"{above}.{local}" if above else local
        whole = symbol.get("range") or symbol["location"]["range"]
        start, end = point(rows, whole["start"], encoding), point(rows, whole["end"], encoding)
        body = positions.slice_of(text, start, end)
        name = local.rpartition(".")[2] or local
        at = _name_at(symbol, rows, start, name, encoding)
        found.append(
            SymbolPlace(
                name=name,
                name_path=name_path,
                kind=_kind(symbol),
                path=path,
                line=at[0] + 1,
                column=at[1] + 1,
                body=body[:BODY_CHARS],
                start=start,
                end=end,
            )
        )
        pending += [(child, name_path) for child in reversed(symbol.get("children") or [])]
    return tuple(found)


def _local(name: str) -> str:
    """``(*Client).Get`` (Go) and ``Client::get`` (C++) as a name path."""
    method = _GO_METHOD.fullmatch(name)
    return f"{method[1]}.{method[2]}" if method else name.replace("::", ".")


def _name_at(
    symbol: JsonObject, rows: list[str], start: tuple[int, int], name: str, encoding: str
) -> tuple[int, int]:
    if "selectionRange" in symbol:
        return point(rows, symbol["selectionRange"]["start"], encoding)
    line, column = start  # the name is not told: its first word in the definition
    row = rows[line] if line < len(rows) else ""
    found = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(row, column)
    return (line, found.start()) if found else start


def _kind(symbol: JsonObject) -> str:
    names, number = _KINDS.split(), int(symbol.get("kind", 0))
    return names[number - 1] if 0 < number <= len(names) else "symbol"


def point(rows: list[str], position: JsonObject, encoding: str) -> tuple[int, int]:
    """A server's position as (line, code point), both from 0; one beyond the line's end is its end."""
    line = int(position["line"])
    if line >= len(rows):
        return line, 0
    return line, positions.to_points(rows[line], max(int(position["character"]), 0), encoding)


def uses(root: Path, answer: Any, encoding: str) -> tuple[SymbolUse, ...]:
    """Locations below the root as references, sorted; blocking (it reads the files)."""
    by_path: dict[str, list[JsonObject]] = {}
    for location in cast("list[JsonObject]", answer or []):
        file = file_of(location["uri"])
        if file.is_relative_to(root):
            by_path.setdefault(file.relative_to(root).as_posix(), []).append(location["range"]["start"])
    found = set[SymbolUse]()
    for path, starts in by_path.items():
        rows = positions.lines(text_of(root / path) or "")
        for start in starts:
            line, column = point(rows, start, encoding)
            text = rows[line].strip()[:200] if line < len(rows) else ""
            found.add(SymbolUse(path=path, line=line + 1, column=column + 1, text=text))
    return tuple(sorted(found, key=lambda use: (use.path, use.line, use.column)))


def problems(diagnostics: list[JsonObject], text: str, encoding: str) -> tuple[CodeProblem, ...]:
    """Those of Error severity, at most 20, from the top of the file (FIL-10)."""
    rows, found = positions.lines(text), list[CodeProblem]()
    for one in diagnostics:
        if one.get("severity", _ERROR) == _ERROR:
            line, column = point(rows, one["range"]["start"], encoding)
            message = " ".join(str(one.get("message", "")).split())[:300]
            found.append(CodeProblem(line=line + 1, column=column + 1, message=message))
    return tuple(sorted(found, key=lambda p: (p.line, p.column, p.message))[:MAX_PROBLEMS])


def edits(root: Path, answer: Any, encoding: str) -> dict[str, tuple[TextEdit, ...]]:
    """A ``WorkspaceEdit`` as edits by path; blocking (it reads the files). Raises ``OpenDevError``."""
    by_path: dict[str, list[TextEdit]] = {}
    for uri, raw in _raw_edits(answer or {}):
        path = _inside(root, uri)
        text = text_of(root / path)
        if text is None:
            message = f"The file {path} went away during the rename."
            raise OpenDevError(ErrorKind.TOOL, message, "Nothing was changed.")
        rows = positions.lines(text)
        by_path.setdefault(path, []).extend(
            TextEdit(
                start=point(rows, edit["range"]["start"], encoding),
                end=point(rows, edit["range"]["end"], encoding),
                text=edit["newText"],
            )
            for edit in raw
        )
    return {path: tuple(made) for path, made in sorted(by_path.items()) if made}


def _raw_edits(answer: JsonObject) -> list[tuple[str, list[JsonObject]]]:
    changes = cast("list[JsonObject]", answer.get("documentChanges") or [])
    if any("kind" in change for change in changes):
        message = "The language server wants to create, move or delete files for this rename."
        raise OpenDevError(ErrorKind.TOOL, message, "Nothing was changed; move the file by hand.")
    listed = [(change["textDocument"]["uri"], change["edits"]) for change in changes]
    return listed or list(cast("dict[str, list[JsonObject]]", answer.get("changes") or {}).items())


def file_of(uri: str) -> Path:
    """The file of a ``file:`` URI, however it is escaped."""
    return Path(unquote(urlsplit(uri).path))


def _inside(root: Path, uri: str) -> str:
    file = file_of(uri)
    if not file.is_relative_to(root):
        message = f"The rename reaches {file}, outside of the working folder."
        raise OpenDevError(ErrorKind.SCOPE, message, "Nothing was changed.")
    return file.relative_to(root).as_posix()
