"""The tool ``replace_symbol_body`` (T17): a new body under the old signature, decorators and docstring (SYM-09)."""

import re

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.ports import SymbolPlace
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .edit.elided import refuse_elided
from .files import lock_key
from .lsp.bodies import Body, brace_body, brace_pairs, python_body, python_lines, white
from .lsp.positions import offset_of, offsets
from .lsp.servers import server_for
from .symbol_edit import edit_at, moved, newline, parses

_DOCSTRING = re.compile(r"""\s*[rRuU]?("|')""")


class Args(Frozen):
    """``symbol_name`` is the name path of one symbol; ``file_path``, relative to the root, the file that defines it."""

    symbol_name: str = Field(min_length=1, max_length=300, description="Name path, e.g. MyClass.method.")
    file_path: str = Field(min_length=1, description="The file that defines the symbol.")
    new_body: str = Field(description="The new body, without signature and outer braces.")
    preserve_signature: bool = Field(
        default=True, description="False: new_body is the whole definition, signature included."
    )


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """``data``: {"path", "symbol", "diff"}."""
    if not args.new_body.strip():
        return ToolResult.failure("new_body is empty. Nothing was changed.", "Send at least one statement.")

    def change(text: str, symbol: SymbolPlace) -> str:
        refuse_elided(text, args.new_body, args.file_path)
        where, new_body = (_body if args.preserve_signature else _whole)(text, symbol, args.new_body)
        new = moved(new_body, where.indent, python=symbol.path.endswith((".py", ".pyi")))
        put = f"{where.lead}{new}{where.tail}".replace("\n", newline(text))
        return text[: where.start] + put + text[where.end :]

    done = "Replaced the body of" if args.preserve_signature else "Replaced"
    return await edit_at(args.symbol_name, args.file_path, ctx, done, change)


def _body(text: str, symbol: SymbolPlace, new: str) -> tuple[Body, str]:
    spec = server_for(symbol.path)
    if spec is not None and spec.body == "python":
        if re.match(rf"\s*((async\s+)?def|class)\s+{re.escape(symbol.name)}\b", new):
            raise _has_signature()
        documented = _DOCSTRING.match(new) is not None and parses(moved(new, "", python=True))
        return python_body(text, symbol.line, keep_docstring=not documented), new
    if spec is None or spec.body != "brace":
        language = spec.language if spec else "this language"
        message = f"Where a body begins in {language} is not known. Nothing was changed."
        raise OpenDevError(ErrorKind.TOOL, message, "Use preserve_signature=false, or edit_file.")
    body = brace_body(text, symbol.start, symbol.end, spec.language)
    signature = text[offset_of(offsets(text), symbol.start, len(text)) : body.start]
    if "".join(new.split()).startswith("".join(signature.split())):
        raise _has_signature()
    stripped = new.strip()
    pairs = brace_pairs(stripped, spec.language)
    if pairs is None:
        raise OpenDevError(ErrorKind.TOOL, "The braces of new_body do not balance. Nothing was changed.")
    return body, stripped[1:-1] if pairs == [(0, len(stripped) - 1)] else new


def _whole(text: str, symbol: SymbolPlace, new: str) -> tuple[Body, str]:
    starts = offsets(text)
    start, end = (offset_of(starts, at, len(text)) for at in (symbol.start, symbol.end))
    if symbol.path.endswith((".py", ".pyi")):
        first, last = python_lines(text, symbol.line)
        start = starts[first - 1]
        end = len(text[: starts[last] if last < len(starts) else len(text)].rstrip("\r\n"))
    line = text.rfind("\n", 0, start) + 1
    line += text.startswith("\ufeff", line)
    # the server may count the words before the name to the statement (`const f = …`): they stand already
    stands = text[line:start].lstrip(" \t")
    new = stands + new.strip().removeprefix(stands.strip()).lstrip() if stands else new
    return Body(line, end, white(text[line:])), new


def _has_signature() -> OpenDevError:
    message = "new_body begins with the signature, which would then stand there twice. Nothing was changed."
    return OpenDevError(ErrorKind.TOOL, message, "Send the body alone, or preserve_signature=false.")


TOOL = Tool(
    name="replace_symbol_body",
    category="Symbols",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={"symbol": "symbol_name", "name": "symbol_name", "path": "file_path", "body": "new_body"},
)
