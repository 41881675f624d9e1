"""notebook_edit (T23): replaces, inserts or deletes one cell of a Jupyter notebook; the rest keeps its bytes (NB-01)."""

import json
import re
import secrets
from typing import Any, Literal, cast

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .files import Text, Write, decode, encode, lock_key, read_bytes, writable_place, write_bytes_atomic

_INDENT = re.compile(r"^\{\r?\n([ \t]+)\"")
_SPACED = re.compile(r'\{\s*"[^"]*": ')
_SHOWN = 80


class Args(Frozen):
    """Arguments of notebook_edit. A cell is named by its place (from 0) or its id."""

    file_path: str = Field(min_length=1, description="Path of the .ipynb file.")
    action: Literal["replace", "insert", "delete"]
    cell: int | str = Field(
        description="Index from 0, or cell id; insert puts the new cell before it (-1 = at the end)."
    )
    source: str = Field(default="", description="The cell's whole new text.")
    cell_type: Literal["code", "markdown", "raw"] | None = Field(
        default=None, description="Of the new text; default: as before, code when inserted."
    )


def _edit(args: Args, ctx: ToolContext) -> ToolResult:
    target = writable_place(args.file_path, ctx)
    data = read_bytes(target.path, target.name)
    ctx.seen.assert_fresh(target.path, data)
    before = decode(data, target.name)
    notebook = _parse(before, target.name)
    cells = cast("list[JsonObject]", notebook["cells"])
    index = _index(args, cells, target.name)
    match args.action:
        case "replace":
            cells[index] = _replaced(cells[index], args)
        case "insert":
            cells.insert(index, _new_cell(args, notebook))
        case "delete":
            del cells[index]
    _validate(notebook, target.name, "The change would make it invalid")
    after = encode(before, _dump(notebook, before.text), target.name)
    write_bytes_atomic(Write(target.path, target.name, data, after), ctx.operations)
    ctx.seen.record(target.path, after)
    done = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}[args.action]
    return ToolResult(
        ok=True,
        text=f"{done} cell {index} of {target.name}; it has {len(cells)} cells now.",
        summary=f"✓ {done} cell {index} of {target.name}",
        data={"path": target.name, "index": index, "cells": len(cells)},
        changed=(target.name,) if target.in_root else (),
    )


def _parse(before: Text, name: str) -> JsonObject:
    """The notebook as JSON, its keys in the file's order. Raises ``OpenDevError`` unless it is a valid version 4 notebook."""
    try:
        notebook: Any = json.loads(before.text)
    except (ValueError, RecursionError) as error:
        raise OpenDevError(
            ErrorKind.TOOL, f"{name} is no notebook: it is not valid JSON ({error})."
        ) from error
    if not isinstance(notebook, dict) or cast("JsonObject", notebook).get("nbformat") != 4:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{name} is no Jupyter notebook of format 4.",
            "Convert an older one with `jupyter nbconvert --to notebook`.",
        )
    _validate(cast("JsonObject", notebook), name, "It is damaged already")
    return cast("JsonObject", notebook)


def _validate(notebook: JsonObject, name: str, when: str) -> None:
    """Raise ``OpenDevError`` when the notebook breaks its format's schema."""
    from nbformat import validator

    untyped = cast("Any", validator)
    wrong = next(
        iter(untyped.iter_validate(notebook, version=4, version_minor=notebook.get("nbformat_minor", 0))),
        None,
    )
    if wrong is not None:
        why = str(wrong).strip().partition("\n")[0][:200]
        raise OpenDevError(ErrorKind.TOOL, f"{name}: {when} ({why}). Nothing was written.")


def _index(args: Args, cells: list[JsonObject], name: str) -> int:
    """The place the action works at. Raises ``OpenDevError`` (not found)."""
    if isinstance(args.cell, str) and not re.fullmatch(r"-?\d+", args.cell):
        places = [place for place, cell in enumerate(cells) if cell.get("id") == args.cell]
        if len(places) == 1:
            return places[0]
        raise OpenDevError(
            ErrorKind.NOT_FOUND, f"{name} has no cell with the id {args.cell[:_SHOWN]!r}.", _known(cells)
        )
    place = int(args.cell)
    end = len(cells) + (args.action == "insert")
    if place == -1 and end > 0:
        return end - 1
    if not 0 <= place < end:
        raise OpenDevError(
            ErrorKind.NOT_FOUND, f"{name} has {len(cells)} cells; there is no cell {place}.", _known(cells)
        )
    return place


def _known(cells: list[JsonObject]) -> str:
    """A short list of what there is."""
    shown = [
        f"{place} ({cell.get('id', '-')}): {''.join(cast('list[str]', cell['source'])).strip()[:40]!r}"
        for place, cell in enumerate(cells[:20])
    ]
    return f"Cells: {'; '.join(shown) or 'none'}."


def _lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def _replaced(cell: JsonObject, args: Args) -> JsonObject:
    """The cell with new text. Outputs of other code are wrong, so they go."""
    kind = args.cell_type or str(cell["cell_type"])
    source = args.source if isinstance(cell.get("source"), str) else _lines(args.source)
    changed: JsonObject = {**cell, "cell_type": kind, "source": source}
    if kind == "code":
        changed |= {"execution_count": None, "outputs": []}
        changed.pop("attachments", None)
    else:
        for key in ("execution_count", "outputs"):
            changed.pop(key, None)
    return changed


def _new_cell(args: Args, notebook: JsonObject) -> JsonObject:
    kind = args.cell_type or "code"
    cell: JsonObject = {"cell_type": kind}
    if kind == "code":
        cell["execution_count"] = None
    if int(notebook.get("nbformat_minor", 0)) >= 5:
        cell["id"] = secrets.token_hex(4)
    cell["metadata"] = {}
    if kind == "code":
        cell["outputs"] = []
    cell["source"] = _lines(args.source)
    return cell


def _dump(notebook: JsonObject, text: str) -> str:
    """JSON in the file's own style: its indentation, its line ends, its way with characters beyond ASCII."""
    found = _INDENT.match(text)
    between = ", " if found is None and _SPACED.match(text) else ","
    dumped = json.dumps(
        notebook,
        indent=found[1] if found else None,
        ensure_ascii=text.isascii() and "\\u" in text,
        separators=(between, ": " if _SPACED.match(text) else ":"),
    )
    if "\r\n" in text:
        dumped = dumped.replace("\n", "\r\n")
    return dumped + text[len(text.rstrip()) :]


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_edit, args, ctx)


TOOL = Tool(
    name="notebook_edit",
    category="Notebook",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={
        "path": "file_path",
        "notebook_path": "file_path",
        "edit_mode": "action",
        "cell_id": "cell",
        "cell_index": "cell",
        "new_source": "source",
    },
)
