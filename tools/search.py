"""search: a regular expression by ripgrep, or a code pattern by ast-grep (T05, FIL-14)."""

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from ..policy.paths import relative
from ..policy.secrets import Secrets, secrets_of
from .child import run_lines
from .edit.canonical import printable
from .files import Place, place

TIMEOUT_S = 60.0
_LINE = 400  # characters of one line that are shown
_AST_GREP = Path(sys.executable).with_name("ast-grep")  # the wheel's; `sg` on PATH may be another program
_WORKER = Path(__file__).with_name("search_worker.py")


class Args(Frozen):
    """Arguments of search."""

    pattern: str = Field(
        min_length=1,
        max_length=10_000,
        description="Regular expression or ast-grep pattern.",
    )
    path: str = Field(default=".", description="Folder or file to search in.")
    type: Literal["text", "ast"] = Field(
        default="text", description="text: regular expression; ast: structure of code."
    )
    lang: str = Field(
        default="", max_length=40, description="Of an ast pattern, e.g. python, typescript, go."
    )
    glob: str = Field(
        default="", max_length=500, description="Only files that match, e.g. *.py or src/**/*.ts."
    )
    context: int = Field(default=0, ge=0, le=20, description="Lines around each match (type text).")


@dataclass(slots=True)
class _Rows:
    """What came in. ``more`` = a match beyond the limit was seen. Lines of files that no tool reads are passed over."""

    limit: int
    secrets: Secrets
    rows: list[JsonObject] = field(default_factory=list["JsonObject"])
    matches: int = 0
    more: bool = False
    error: str = ""

    def add(self, path: str, line: int, text: str, *, match: bool = True) -> bool:
        if self.secrets.match(path):
            return True
        if match and self.matches >= self.limit:
            self.more = True
            return False
        self.matches += match
        self.rows.append({"path": path, "line": line, "text": _short(text), "match": match})
        return True


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    rows = _Rows(ctx.limits.search_matches, secrets_of(ctx.deny_read))
    try:
        where = await asyncio.to_thread(place, args.path or ".", ctx)
        if not await asyncio.to_thread(where.path.exists):
            return ToolResult.failure(f"There is no {where.name}.", "List the folder to see what is there.")
        if args.type == "ast":
            await _ast(args, ctx, where, rows)
        else:
            await _text(args, ctx, where, rows)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    if rows.error:
        return ToolResult.failure(
            f"The pattern cannot be searched for: {rows.error[:1_000]}", "Correct the pattern."
        )
    return _result(args, ctx, where, rows)


async def _text(args: Args, ctx: ToolContext, where: Place, rows: _Rows) -> None:
    binary = shutil.which("rg", path=ctx.env.get("PATH", ""))
    if binary is None:
        await _by_worker(args, ctx, where, rows)
        return
    # --no-config: a user's file could name a preprocessor; --engine auto: PCRE2 for look-around where it is built in.
    argv = [binary, "--no-config", "--json", "--hidden", "--sort=path", "--engine=auto", "--max-columns=100000",
            f"--max-count={rows.limit + 1}", f"--context={args.context}", *_globs(args), "--regexp", args.pattern,
            "--", str(where.path)]  # fmt: skip
    code, said = await run_lines(
        argv,
        cwd=ctx.root,
        env=ctx.env,
        on_line=lambda line: _ripgrep_line(line, ctx, rows),
        timeout_s=TIMEOUT_S,
    )
    if code == 2 and not rows.rows:
        rows.error = said or "ripgrep failed"


def _globs(args: Args) -> list[str]:
    # Later globs win in ripgrep: git's files and files of secrets stay out whatever is asked for.
    return [*([f"--glob={args.glob}"] if args.glob else []), "--glob=!.git", "--glob=!.env"]


def _ripgrep_line(line: bytes, ctx: ToolContext, rows: _Rows) -> bool:
    message = cast("JsonObject", json.loads(line))
    if message["type"] not in ("match", "context"):
        return True
    data = cast("JsonObject", message["data"])
    path, text = _text_of(data["path"]), _text_of(data["lines"])
    name = relative(Path(path), ctx.root)
    return rows.add(name, int(data.get("line_number") or 0), text, match=message["type"] == "match")


def _text_of(value: Any) -> str:
    """ripgrep gives text, or base64 of bytes that are no UTF-8."""
    return str(cast("JsonObject", value).get("text", "(not valid UTF-8)"))


async def _by_worker(args: Args, ctx: ToolContext, where: Place, rows: _Rows) -> None:
    job = {"root": str(ctx.root), "path": str(where.path), "pattern": args.pattern, "glob": args.glob,
           "context": args.context, "limit": rows.limit + 1}  # fmt: skip

    def on_line(line: bytes) -> bool:
        row = cast("JsonObject", json.loads(line))
        if "error" in row:
            rows.error = str(row["error"])
            return False
        name = relative(Path(str(row["path"])), ctx.root)
        return rows.add(name, int(row["line"]), str(row["text"]), match=bool(row["match"]))

    code, said = await run_lines(
        [sys.executable, "-I", str(_WORKER)],
        cwd=ctx.root,
        env=ctx.env,
        on_line=on_line,
        timeout_s=TIMEOUT_S,
        stdin=json.dumps(job).encode(),
    )
    if code:
        raise OpenDevError(ErrorKind.TOOL, f"The search failed (exit code {code}): {said[-500:]}")


async def _ast(args: Args, ctx: ToolContext, where: Place, rows: _Rows) -> None:
    if not args.lang:
        raise OpenDevError(
            ErrorKind.TOOL, "A search of type ast needs `lang`.", "Give the language, e.g. python."
        )
    argv = [str(_AST_GREP), "run", f"--pattern={args.pattern}", f"--lang={args.lang}", "--json=stream",
            *([f"--globs={args.glob}"] if args.glob else []), str(where.path)]  # fmt: skip

    def on_line(line: bytes) -> bool:
        found = cast("JsonObject", json.loads(line))
        start = cast("JsonObject", cast("JsonObject", found["range"])["start"])
        name = relative(Path(ctx.root, str(found["file"])), ctx.root)
        return rows.add(name, int(start["line"]) + 1, str(found["text"]))

    code, said = await run_lines(argv, cwd=ctx.root, env=ctx.env, on_line=on_line, timeout_s=TIMEOUT_S)
    if code not in (None, 0, 1):
        raise OpenDevError(
            ErrorKind.TOOL, f"ast-grep refused the search: {said[:1_000]}", "Check pattern and lang."
        )
    rows.rows.sort(key=lambda row: (row["path"], row["line"]))


def _result(args: Args, ctx: ToolContext, where: Place, rows: _Rows) -> ToolResult:
    if not rows.matches:
        return ToolResult(
            ok=True,
            text=f"No matches for {args.pattern} in {where.name}.",
            summary="✓ Search completed (no matches)",
            data={"matches": [], "more": False},
        )
    lines: list[str] = []
    used, shown, path = 0, 0, ""
    more = rows.more
    for row in rows.rows:
        new = [printable(str(row["path"]))] if row["path"] != path else []
        new.append(f"  {row['line']}{':' if row['match'] else '-'} {row['text']}")
        used += sum(len(line) + 1 for line in new)
        if used > ctx.limits.result_chars - 200:
            more = True
            break
        path, shown = str(row["path"]), shown + bool(row["match"])
        lines += new
    if more:
        lines.append(f"[only the first {shown} matches are shown; narrow the pattern, the path or the glob]")
    matches = [{k: row[k] for k in ("path", "line", "text")} for row in rows.rows if row["match"]][:shown]
    return ToolResult(
        ok=True,
        text="\n".join(lines),
        summary=f"✓ Search completed ({shown}{'+' if more else ''} matches)",
        data={"matches": matches, "more": more},
    )


def _short(text: str) -> str:
    line = printable(text.rstrip("\r\n"))
    return line if len(line) <= _LINE else f"{line[:_LINE]}[… {len(line) - _LINE:,} more characters]"


TOOL = Tool(
    name="search",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={
        "query": "pattern",
        "regex": "pattern",
        "language": "lang",
        "include": "glob",
        "directory": "path",
        "mode": "type",
    },
)
