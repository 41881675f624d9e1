"""Where a definition and its body begin and end, as offsets into the text (SYM-09): Python by its grammar, braces by a scan."""

import ast
import re
from dataclasses import dataclass

from ...core.errors import ErrorKind, OpenDevError
from .positions import offset_of, offsets

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_TEXT_IN_SINGLE_QUOTES = frozenset({"typescript", "php", "shellscript", "perl", "dart", "r"})
_HASH_COMMENTS = frozenset({"php", "shellscript", "perl", "r", "terraform", "rego"})
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_STRINGS = r'"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`'
_SINGLE = r"'(?:\\.|[^'\\\n])+'"
_CHARACTER = r"'(?:\\[^'\n]+|[^'\\\n])'"  # a lone quote is none: Rust's lifetimes
_PATTERN = r"(?:(?<=[=(,:;!&|?{}\[])|(?<=return))[ \t]*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/"
_HASH = r"(?:(?<=[\s;])|^)\#[^\n]*"


@dataclass(frozen=True, slots=True)
class Body:
    """``start``:``end`` is what is replaced; ``lead`` and ``tail`` go around the new lines, ``indent`` before each of them."""

    start: int
    end: int
    indent: str
    lead: str = ""
    tail: str = ""


def python_body(text: str, line: int, *, keep_docstring: bool) -> Body:
    """The body of the definition whose name stands in ``line`` (from 1): after the colon, and after the docstring if kept.

    Raises:
        OpenDevError: ``TOOL``: the file does not parse, or no function or class is defined there.
    """
    node = python_definition(parsed(text), line)
    starts, first = offsets(text), node.body[0]
    end = _end(text, starts, node.body[-1])
    outer = white(text[starts[node.lineno - 1] :].removeprefix("\ufeff"))
    top = first_line(first)
    begin = _offset(text, starts, top, 0)
    own_line = top > node.lineno and ":" not in _before(text, starts, first, top)
    indent = white(text[begin:]) if own_line else outer + unit_of(text)
    if ast.get_docstring(node, clean=False) is not None and keep_docstring:
        after = _end(text, starts, first)
        return Body(after, max(end, after), indent, "\n")
    if not own_line:
        at = _offset(text, starts, first.lineno, first.col_offset)
        return Body(len(text[:at].rstrip(" \t")), end, indent, "\n")
    while top > 1 and re.fullmatch(r"\s*(#.*)?", _row(text, starts, top - 1)):
        top -= 1  # comments above the first statement are of the body
    return Body(starts[top - 1], end, indent)


def parsed(text: str) -> ast.Module:
    """The file's grammar. Raises ``OpenDevError``."""
    try:
        return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"The file does not parse as Python ({error}). Nothing was changed."
        raise OpenDevError(ErrorKind.TOOL, message, "Use edit_file.") from error


def python_definition(module: ast.Module, line: int) -> Definition:
    """The function or class whose name stands in ``line``. Raises ``OpenDevError``."""
    for node in ast.walk(module):
        if isinstance(node, Definition) and node.lineno == line:
            return node
    message = f"No function or class is defined in line {line}. Nothing was changed."
    raise OpenDevError(ErrorKind.TOOL, message, "Only functions and classes have a body; use edit_file.")


def python_lines(text: str, line: int) -> tuple[int, int]:
    """First and last line (from 1) of the definition or statement whose name stands in ``line``, decorators included."""
    module = parsed(text)
    try:
        node: ast.stmt = python_definition(module, line)
    except OpenDevError:
        around = [
            one
            for one in ast.walk(module)
            if isinstance(one, ast.stmt) and one.lineno <= line <= (one.end_lineno or one.lineno)
        ]
        if not around:
            raise
        node = min(around, key=lambda one: (one.end_lineno or one.lineno) - one.lineno)
    return first_line(node), node.end_lineno or node.lineno


def first_line(node: ast.stmt) -> int:
    """Where a statement begins, its decorators included."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(one.lineno for one in decorators)])


def brace_body(text: str, start: tuple[int, int], end: tuple[int, int], language: str) -> Body:
    """Between the definition's last pair of braces, that of its body; a return type in braces comes before it.

    Raises:
        OpenDevError: ``TOOL``: there is no such pair.
    """
    starts = offsets(text)
    begin, stop = offset_of(starts, start, len(text)), offset_of(starts, end, len(text))
    pairs = brace_pairs(text[begin:stop], language)
    if not pairs or text[begin + pairs[-1][1] + 1 : stop].strip(" \t\r\n;,)"):
        message = "The definition has no body in braces that could be told for sure. Nothing was changed."
        raise OpenDevError(ErrorKind.TOOL, message, "Use edit_file, or preserve_signature=false.")
    opened, closed = begin + pairs[-1][0], begin + pairs[-1][1]
    outer = white(text[starts[start[0]] :])
    inside = [row for row in text[opened + 1 : closed].split("\n")[1:] if row.strip()]
    indent = white(inside[0]) if inside and len(white(inside[0])) > len(outer) else outer + unit_of(text)
    return Body(opened + 1, closed, indent, "\n", f"\n{outer}")


def brace_pairs(text: str, language: str) -> list[tuple[int, int]] | None:
    """The outermost pairs of braces, as offsets; None when they do not balance. Strings and comments are passed over."""
    quoted = _SINGLE if language in _TEXT_IN_SINGLE_QUOTES else _CHARACTER
    parts = [_HASH if language in _HASH_COMMENTS else "", _COMMENT, _STRINGS, quoted]
    if language == "shellscript":
        parts.remove(_COMMENT)
    parts += [_PATTERN if language == "typescript" else "", "[{}]"]
    pairs, stack = list[tuple[int, int]](), list[int]()
    for token in re.finditer("|".join(filter(None, parts)), text, re.DOTALL | re.MULTILINE):
        if token[0] == "{":
            stack.append(token.start())
        elif token[0] == "}":
            if not stack:
                return None
            opened = stack.pop()
            if not stack:
                pairs.append((opened, token.start()))
    return None if stack else pairs


def unit_of(text: str) -> str:
    """One step of indentation in this file; four blanks when it has none."""
    steps = [found for row in text.split("\n") if (found := white(row))]
    if any(step.startswith("\t") for step in steps):
        return "\t"
    width = min((len(step) for step in steps if len(step) % 2 == 0), default=4)
    return " " * (width if width in (2, 8) else 4)


def white(text: str) -> str:
    """The blanks and tabs that ``text`` begins with."""
    return text[: len(text) - len(text.lstrip(" \t"))]


def _row(text: str, starts: list[int], line: int) -> str:
    return text[starts[line - 1] : starts[line] if line < len(starts) else len(text)]


def _before(text: str, starts: list[int], node: ast.stmt, top: int) -> str:
    """What stands before a statement in its first line."""
    return "" if top != node.lineno else _row(text, starts, top).encode()[: node.col_offset].decode().strip()


def _end(text: str, starts: list[int], node: ast.stmt) -> int:
    return _offset(text, starts, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _offset(text: str, starts: list[int], line: int, column: int) -> int:
    """The offset of the parser's position: its columns are UTF-8 bytes, and it does not see a byte-order mark."""
    row = _row(text, starts, line)
    mark = 1 if line == 1 and row.startswith("\ufeff") else 0
    return starts[line - 1] + mark + len(row[mark:].encode()[:column].decode("utf-8", "ignore"))
