"""The outline of one source file by tree-sitter: definitions with their signatures, and the names it refers to (RET-08)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import tree_sitter_go
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from ..core.model import Frozen

MAX_DEFINITIONS = 200  # of one file
MAX_NAMES = 1_000
_SIGNATURE_CHARS = 140
_SHORTEST = 3  # a shorter name says nothing


class Definition(Frozen):
    """A class, function, method or type; ``line`` counts from 1, ``depth`` 1 = inside a class."""

    name: str
    line: int
    depth: int
    signature: str


class Outline(Frozen):
    """What a file defines, in order, and the names it uses, sorted."""

    definitions: tuple[Definition, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Grammar:
    language: Callable[[], object]
    definitions: str
    names: str


_JS = """
(function_declaration name: (identifier) @name) @def
(generator_function_declaration name: (identifier) @name) @def
(method_definition name: (property_identifier) @name) @def
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @def
"""
_TS = """
(class_declaration name: (type_identifier) @name) @def
(abstract_class_declaration name: (type_identifier) @name) @def
(interface_declaration name: (type_identifier) @name) @def
(type_alias_declaration name: (type_identifier) @name) @def
(enum_declaration name: (identifier) @name) @def
"""
_TS_NAMES = "[(identifier) (property_identifier) (type_identifier)] @ref"
_PYTHON = _Grammar(
    tree_sitter_python.language,
    "(function_definition name: (identifier) @name) @def (class_definition name: (identifier) @name) @def",
    "(identifier) @ref",
)
_JAVASCRIPT = _Grammar(
    tree_sitter_javascript.language,
    f"{_JS} (class_declaration name: (identifier) @name) @def",
    "[(identifier) (property_identifier)] @ref",
)
_TYPESCRIPT = _Grammar(tree_sitter_typescript.language_typescript, _JS + _TS, _TS_NAMES)
_TSX = _Grammar(tree_sitter_typescript.language_tsx, _JS + _TS, _TS_NAMES)
_GO = _Grammar(
    tree_sitter_go.language,
    """
    (function_declaration name: (identifier) @name) @def
    (method_declaration name: (field_identifier) @name) @def
    (type_spec name: (type_identifier) @name) @def
    """,
    "[(identifier) (type_identifier) (field_identifier)] @ref",
)
_BY_SUFFIX = {
    ".py": _PYTHON,
    ".pyi": _PYTHON,
    ".js": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".cjs": _JAVASCRIPT,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".cts": _TYPESCRIPT,
    ".tsx": _TSX,
    ".go": _GO,
}
SUFFIXES = frozenset(_BY_SUFFIX)
_LOCAL = frozenset(
    {
        "function_definition",
        "function_declaration",
        "generator_function_declaration",
        "method_definition",
        "method_declaration",
        "arrow_function",
        "function_expression",
        "func_literal",
    }
)
_CLASSES = frozenset({"class_definition", "class_declaration", "abstract_class_declaration"})


def outline(suffix: str, source: bytes) -> Outline:
    """The outline of a file with this suffix (one of ``SUFFIXES``); of broken code what can be recognised."""
    parser, definitions, names = _tools(suffix)
    root = parser.parse(source).root_node
    found: list[Definition] = []
    own: set[int] = set()
    seen: set[tuple[str, int]] = set()
    for _, captures in QueryCursor(definitions).matches(root):
        node, name = captures["def"][0], captures["name"][0]
        own.add(name.start_byte)
        depth = _depth(node)
        key = (_text(name), depth or 0)
        if (
            depth is None or key in seen or len(found) >= MAX_DEFINITIONS
        ):  # the first of several overloads is enough
            continue
        seen.add(key)
        line = node.start_point.row + 1
        found.append(Definition(name=key[0], line=line, depth=depth, signature=_signature(node)))
    used = {
        text
        for node in QueryCursor(names).captures(root).get("ref", [])
        if node.start_byte not in own and len(text := _text(node)) >= _SHORTEST
    }
    found.sort(key=lambda definition: definition.line)
    return Outline(definitions=tuple(found), names=tuple(sorted(used)[:MAX_NAMES]))


@cache
def _tools(suffix: str) -> tuple[Parser, Query, Query]:
    grammar = _BY_SUFFIX[suffix]
    language = Language(grammar.language())
    return Parser(language), Query(language, grammar.definitions), Query(language, grammar.names)


def _depth(node: Node) -> int | None:
    """How many classes it stands in; None inside a function: local helpers are no part of an outline."""
    depth = 0
    parent = node.parent
    while parent is not None:
        if parent.type in _LOCAL:
            return None
        depth += parent.type in _CLASSES
        parent = parent.parent
    return depth


def _signature(node: Node) -> str:
    """The text from the beginning of a definition to its body, on one line."""
    value = node.child_by_field_name("value")
    body = node.child_by_field_name("body") or (value.child_by_field_name("body") if value else None)
    text = node.text or b""
    head = text[: body.start_byte - node.start_byte] if body else text.split(b"\n", 1)[0]
    line = " ".join(head.decode("utf-8", "replace").split()).rstrip(" :{")
    return line if len(line) <= _SIGNATURE_CHARS else f"{line[:_SIGNATURE_CHARS]}…"


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
