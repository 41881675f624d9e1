"""rewrite_code: a structural rewrite by ast-grep; it finds, we write, all or nothing (recipe step ``rewrite``)."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .edit.document import Document
from .edit.splice import Splice, apply_splices, literal_splice
from .files import Text, decode, read_bytes
from .mass_edit import FileChange, commit, named
from .walk import matching_files

_BATCH = 500  # files a process is given: the command line has a limit
_TIMEOUT_S = 120.0
_ROUNDS = 20  # how deep matches inside matches are followed
_BINARY = Path(sys.executable).with_name("ast-grep")  # the wheel's; /usr/bin/sg may be another program


class Args(Frozen):
    """Arguments of rewrite_code."""

    lang: str = Field(min_length=1, description="Language of the pattern, e.g. python, typescript, go.")
    pattern: str = Field(min_length=1, description="ast-grep pattern, e.g. print($A).")
    rewrite: str = Field(description="What to put there, e.g. log.info($A).")
    glob: str = Field(
        default="", description="Only files that match, e.g. src/**/*.py; empty: all of the language."
    )


@dataclass(frozen=True, slots=True)
class _Match:
    start: int  # bytes from the file's start
    end: int
    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class _Rewritten:
    after: str
    count: int
    left: int  # matches inside other matches that could not be followed safely


class _AstGrep:
    """Runs the program on files, or on a text, and reads its matches."""

    def __init__(self, args: Args, ctx: ToolContext) -> None:
        self._flags = ["run", "--pattern", args.pattern, "--rewrite", args.rewrite, "--lang", args.lang]
        self._ctx = ctx

    async def in_files(self, names: Sequence[str]) -> dict[str, list[_Match]]:
        """Matches by file."""
        found: dict[str, list[_Match]] = {}
        for at in range(0, len(names), _BATCH):
            batch = [f"./{name}" for name in names[at : at + _BATCH]]
            for item in await self._call(["--no-ignore=hidden", *batch], b""):
                name = str(item["file"]).removeprefix("./")
                found.setdefault(name, []).append(_match(item))
        return found

    async def in_text(self, data: bytes) -> list[_Match]:
        """Matches in one text."""
        return [_match(item) for item in await self._call(["--stdin"], data)]

    async def _call(self, more: Sequence[str], data: bytes) -> list[JsonObject]:
        try:
            process = await asyncio.create_subprocess_exec(
                str(_BINARY),
                *self._flags,
                "--json=compact",
                *more,
                cwd=self._ctx.root,
                env=dict(self._ctx.env),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise _failed(
                f"ast-grep cannot be started ({error})", "Install the package ast-grep-cli."
            ) from error
        try:
            output, complaint = await asyncio.wait_for(process.communicate(data), _TIMEOUT_S)
        except TimeoutError as error:
            raise _failed(f"ast-grep took more than {_TIMEOUT_S:.0f} s", "Narrow the glob.") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode not in (0, 1):  # 1: no match
            said = complaint.decode(errors="replace").strip()[:500]
            raise _failed(
                f"ast-grep refused the call (exit code {process.returncode}): {said}",
                "Check lang and pattern.",
            )
        return cast("list[JsonObject]", json.loads(output or b"[]"))


def _match(item: JsonObject) -> _Match:
    span = item["range"]["byteOffset"]
    return _Match(span["start"], span["end"], item["text"], item.get("replacement", ""))


def _failed(message: str, hint: str) -> OpenDevError:
    return OpenDevError(ErrorKind.TOOL, f"{message}. Nothing was rewritten.", hint)


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        return await _rewrite(args, ctx)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)


async def _rewrite(args: Args, ctx: ToolContext) -> ToolResult:
    engine = _AstGrep(args, ctx)
    files = await asyncio.to_thread(matching_files, ctx.root, args.glob, ctx.deny_read)
    found = await engine.in_files(files)
    changes: list[FileChange] = []
    left: list[str] = []
    for name in sorted(found):
        data = await asyncio.to_thread(read_bytes, ctx.root / name, name)
        before = decode(data, name)
        result = await _rewritten(engine, before, found[name], name)
        if result.after != before.text:
            changes.append(FileChange(name, data, before, result.after, result.count))
        if result.left:
            left.append(f"{name} ({result.left})")
    if not changes:
        return ToolResult.failure(
            f"Nothing was rewritten: the {args.lang} pattern {args.pattern[:200]!r} matches in none of the {len(files)} files"
            f" under {args.glob or 'the working folder'}, or the rewrite changes nothing.",
            "Check lang, pattern ($NAME is one node, $$$NAME any number) and glob.",
        )
    notes = [f"Matches inside other matches were left as they are: {named(left)}."] if left else []
    return await asyncio.to_thread(lambda: commit(changes, ctx, verb="Rewrote", notes=notes))


async def _rewritten(engine: _AstGrep, before: Text, matches: list[_Match], name: str) -> _Rewritten:
    """The outermost matches are replaced, then those inside of them, round by round.

    A next round runs only when exactly the inner matches remain: a rewrite that matches itself is never applied twice.
    """
    text, count = _round(before, before.text, matches, name)
    inner = len(matches) - count
    for _ in range(_ROUNDS):
        if not inner:
            break
        again = await engine.in_text(before.mark + text.encode())
        if len(again) != inner:
            break
        text, done = _round(before, text, again, name)
        count += done
        inner -= done
    return _Rewritten(text, count, inner)


def _round(before: Text, text: str, matches: list[_Match], name: str) -> tuple[str, int]:
    """``text`` with the outermost matches replaced, and their number."""
    data = before.mark + text.encode()
    document = Document(text)
    outer: list[_Match] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if not outer or match.start >= outer[-1].end:
            outer.append(match)
    splices: list[Splice] = []
    for match in outer:
        if data[match.start : match.end] != match.text.encode():
            raise _failed(f"{name} changed while it was searched", "Run the call again.")
        start = len(data[len(before.mark) : match.start].decode())
        span = document.to_view(start), document.to_view(start + len(match.text))
        splices.append(literal_splice(document, *span, match.replacement))
    return apply_splices(text, splices), len(outer)


TOOL = Tool(
    name="rewrite_code",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (f"glob:{args.glob}",),
    aliases={"language": "lang", "replacement": "rewrite", "files": "glob"},
)
