"""replace_text: one replacement in every file that matches a glob, all or nothing (recipe step ``replace``)."""

import re
from dataclasses import dataclass

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .edit.document import Document
from .edit.splice import apply_splices, literal_splice
from .files import decode, read_bytes
from .mass_edit import FileChange, commit, named
from .walk import matching_files


class Args(Frozen):
    """Arguments of replace_text."""

    pattern: str = Field(
        min_length=1, description="The text to find, or a regular expression when regex is true."
    )
    replacement: str = Field(description="The text to put there; literal unless regex is true.")
    glob: str = Field(
        min_length=1, description="Files to change, e.g. src/**/*.py (anchored at the working folder)."
    )
    regex: bool = Field(
        default=False, description="Python regular expression, ^ and $ per line; \\1 in the replacement."
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    find: re.Pattern[str]
    replacement: str
    expand: bool

    def apply(self, document: Document) -> tuple[str, int]:
        """The new text and how many places changed."""
        try:
            found = [
                (match, match.expand(self.replacement) if self.expand else self.replacement)
                for match in self.find.finditer(document.view)
            ]
        except (re.error, IndexError) as error:
            raise _wrong(error) from error
        changes = [literal_splice(document, *match.span(), text) for match, text in found if match[0] != text]
        return apply_splices(document.raw, changes), len(changes)


def _rule(args: Args) -> _Rule:
    pattern = args.pattern.replace("\r\n", "\n")
    try:
        find = re.compile(pattern if args.regex else re.escape(pattern), re.MULTILINE)
    except re.error as error:
        raise _wrong(error) from error
    return _Rule(find, args.replacement, args.regex)


def _wrong(error: Exception) -> OpenDevError:
    return OpenDevError(
        ErrorKind.TOOL,
        f"The regular expression or its replacement is wrong: {error}. Nothing was replaced.",
        "The syntax is that of Python's re; \\1 or \\g<name> stands for a group.",
    )


def _replace(args: Args, ctx: ToolContext) -> ToolResult:
    rule = _rule(args)
    files = matching_files(ctx.root, args.glob, ctx.deny_read)
    if not files:
        hint = f" `**/{args.glob}` looks in every folder." if "/" not in args.glob else ""
        return ToolResult.failure(
            f"No file matches {args.glob}. Nothing was replaced.", f"Check the glob.{hint}"
        )
    changes: list[FileChange] = []
    skipped: list[str] = []
    for name in files:
        try:
            data = read_bytes(ctx.root / name, name)
            before = decode(data, name)
        except OpenDevError:
            skipped.append(name)
            continue
        if before.foreign:
            skipped.append(name)
            continue
        after, count = rule.apply(Document(before.text))
        if count:
            changes.append(FileChange(name, data, before, after, count))
    notes = [f"Skipped (binary, too large or not UTF-8): {named(skipped)}."] if skipped else []
    if not changes:
        return ToolResult.failure(
            f"Nothing was replaced: {args.pattern[:200]!r} occurs in none of the {len(files)} files that match"
            f" {args.glob}, or its replacement is the same. {' '.join(notes)}".strip(),
            "Check pattern and glob.",
        )
    return commit(changes, ctx, verb="Replaced", notes=notes)


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_replace, args, ctx)


TOOL = Tool(
    name="replace_text",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (f"glob:{args.glob}",),
    aliases={"with": "replacement", "files": "glob"},
)
