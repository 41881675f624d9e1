"""read_pdf (T22): text and metadata of a PDF, a range of pages at a time (PDF-01)."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .child import run_lines
from .files import Place, place, read_bytes
from .outside import as_data

MAX_CHARS = 50_000
MAX_PDF = 200_000_000  # bytes
TIMEOUT_S = 60.0
_WORKER = Path(__file__).with_name("pdf_worker.py")
_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:(-)\s*(\d{1,6})?\s*)?")


class Args(Frozen):
    """Arguments of read_pdf."""

    file_path: str = Field(min_length=1, description="Path of the PDF file.")
    pages: str = Field(
        default="", max_length=20, description='Pages, for example "3", "1-5" or "10-"; default all.'
    )
    password: str = Field(default="", max_length=200, description="Of an encrypted file.")


def _range(pages: str) -> tuple[int, int]:
    """First and last page; a last of 0 is the file's last. Raises ``OpenDevError``."""
    found = _RANGE.fullmatch(pages) if pages.strip() else None
    if found is None and not pages.strip():
        return 1, 0
    first = int(found[1]) if found else 0
    last = (int(found[3]) if found[3] else 0) if found and found[2] else first
    if first < 1 or (last and last < first):
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{pages!r} is no range of pages.",
            'Give "3", "1-5" or "10-"; pages count from 1.',
        )
    return first, last


def _head(found: Place) -> bytes:
    """The first bytes; the worker reads the rest, so a PDF may be larger than a text. Raises ``OpenDevError``."""
    if found.path.is_file() and found.path.stat().st_size <= MAX_PDF:
        with found.path.open("rb") as file:
            return file.read(1024)
    return read_bytes(found.path, found.name)[:1024]


def _locate(file_path: str, ctx: ToolContext) -> Place:
    found = place(file_path, ctx)
    if b"%PDF" not in _head(found):
        raise OpenDevError(ErrorKind.TOOL, f"{found.name} is no PDF file.", "Use read_file for text.")
    return found


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        first, last = _range(args.pages)
        found = await asyncio.to_thread(_locate, args.file_path, ctx)
        rows = await _rows(found, {"first": first, "last": last, "password": args.password}, ctx)
        return _result(found.name, first, rows)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)


async def _rows(found: Place, wanted: JsonObject, ctx: ToolContext) -> list[JsonObject]:
    """What the worker tells of the file. Raises ``OpenDevError`` when it cannot read it."""
    rows: list[JsonObject] = []

    def on_line(line: bytes) -> bool:
        rows.append(cast("JsonObject", json.loads(line)))
        return True

    job = {"path": str(found.path), "chars": MAX_CHARS, **wanted}
    code, said = await run_lines(
        [sys.executable, "-I", str(_WORKER)],
        cwd=ctx.root,
        env=ctx.env,
        on_line=on_line,
        timeout_s=TIMEOUT_S,
        stdin=json.dumps(job).encode(),
    )
    problem = next((row for row in rows if "error" in row), None)
    if problem is not None and problem["kind"] == "encrypted":
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{found.name} is encrypted{' and the password is wrong' if wanted['password'] else ''}.",
            "Ask the user for its password, or for a copy without one.",
        )
    if code or not rows or "pages" not in rows[0]:
        why = str(problem["error"]) if problem else (said.splitlines() or ["the reader ended early"])[-1]
        raise OpenDevError(ErrorKind.TOOL, f"{found.name} cannot be read as PDF ({why[:300]}).")
    return rows


def _result(name: str, first: int, rows: list[JsonObject]) -> ToolResult:
    total, metadata = int(rows[0]["pages"]), cast("dict[str, str]", rows[0]["metadata"])
    pages = [row for row in rows if "page" in row]
    if first > total:
        raise OpenDevError(ErrorKind.TOOL, f"{name} has {total} pages; page {first} is past its end.")
    lines = [f"{key}: {value}" for key, value in metadata.items()]
    lines += [f"--- page {row['page']} of {total} ---\n{_text(row)}" for row in pages]
    notes: list[str] = []
    if not any(str(row["text"]).strip() for row in pages):
        notes.append("[These pages hold no text; they may be scanned pictures.]")
    problem = next((row for row in rows if "error" in row), None)
    last = int(pages[-1]["page"]) if pages else first - 1
    if problem is not None:
        notes.append(
            f'[Page {last + 1} cannot be read ({problem["error"]}); go on with pages="{last + 2}-".]'
        )
    elif sum(len(str(row["text"])) for row in pages) >= MAX_CHARS:
        notes.append(f'[Cut at {MAX_CHARS:,} characters in page {last}; go on with pages="{last}-".]')
    return ToolResult(
        ok=True,
        text="\n".join([as_data(name, "\n".join(lines)), *notes]),
        summary=f"✓ Read {name} (pages {first}-{last} of {total})",
        data={"pages": total, "first": first, "last": last, "metadata": metadata},
    )


def _text(row: dict[str, Any]) -> str:
    return str(row["text"]).strip() or "(no text)"


TOOL = Tool(
    name="read_pdf",
    category="PDF",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={"path": "file_path", "page_range": "pages"},
)
