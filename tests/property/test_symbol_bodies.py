"""Bodies of real functions: after a replacement only that body differs in the grammar, and every byte around it is as before (SYM-09)."""

import ast
import json
import random
import tempfile
import textwrap
import types
import typing
from pathlib import Path
from typing import Any

import pytest
from opendev.core.ports import SymbolPlace
from opendev.tools.lsp.bodies import brace_body, brace_pairs, python_body, python_definition
from opendev.tools.lsp.positions import offset_of, offsets
from opendev.tools.symbol_edit import moved
from opendev.tools.symbol_insert import inserted

MODULES: list[types.ModuleType] = [ast, json, random, tempfile, textwrap, types, typing]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def texts() -> list[Any]:
    """Name and text of each; the largest are soak tests."""
    found: list[Any] = []
    for module in MODULES:
        assert module.__file__ is not None
        text = Path(module.__file__).read_text("utf-8")
        marks = pytest.mark.soak if len(text) > 50_000 else ()
        found.append(pytest.param(module.__name__, text, marks=marks))
    return found


def expected(text: str, line: int) -> str:
    """The grammar with the definition's body replaced, its docstring kept."""
    module = ast.parse(text)
    node = python_definition(module, line)
    docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    node.body = [*docstring, *ast.parse("x = '''\n a\n'''\nraise x").body]
    return ast.dump(module)


@pytest.mark.req("SYM-09")
@pytest.mark.parametrize(("name", "text"), texts(), ids=lambda value: value if len(value) < 40 else "")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_body_changes(name: str, text: str, newline: str) -> None:
    rng = random.Random(name)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Definition)]
    source = text.replace("\n", newline)
    for node in rng.sample(nodes, min(6, len(nodes))):
        body = python_body(source, node.lineno, keep_docstring=True)
        new = moved("x = '''\n a\n'''\nraise x", body.indent, python=True)
        after = (
            source[: body.start] + (body.lead + new + body.tail).replace("\n", newline) + source[body.end :]
        )
        assert ast.dump(ast.parse(after)) == expected(text, node.lineno)
        assert "\n" not in after.replace("\r\n", "") or newline == "\n"


@pytest.mark.req("SYM-10")
@pytest.mark.parametrize(("name", "text"), texts(), ids=lambda value: value if len(value) < 40 else "")
@pytest.mark.parametrize("before", [True, False])
def test_an_insertion_changes_nothing_else(name: str, text: str, before: bool) -> None:
    rng = random.Random(name)
    module = ast.parse(text)
    parents = {child: parent for parent in ast.walk(module) for child in ast.iter_child_nodes(parent)}
    nodes = [node for node in ast.walk(module) if isinstance(node, Definition)]
    for node in rng.sample(nodes, min(6, len(nodes))):
        symbol = SymbolPlace(
            name=node.name, name_path=node.name, kind="function", path="a.py", line=node.lineno, column=1,
            start=(node.lineno - 1, node.col_offset), end=(node.lineno, 0),
        )  # fmt: skip
        after = inserted(text, symbol, "def inserted_here():\n    return 1\n", before=before)
        made = ast.parse(after)
        new = next(n for n in ast.walk(made) if isinstance(n, ast.FunctionDef) and n.name == "inserted_here")
        around = next(n for n in ast.walk(made) if new in ast.iter_child_nodes(n))
        assert type(around) is type(parents[node])
        around_body = [n for n in ast.iter_child_nodes(around) if isinstance(n, ast.stmt)]
        beside = around_body[around_body.index(new) + (1 if before else -1)]
        assert isinstance(beside, Definition)
        assert beside.name == node.name
        kept = [line for line in after.split("\n") if line.strip()]
        for line in textwrap.indent("def inserted_here():\n    return 1", " " * node.col_offset).split("\n"):
            kept.remove(line)
        assert kept == [line for line in text.split("\n") if line.strip()]


BRACES = {
    "rust": ("fn f<'a>(x: &'a str) -> char {", " let c = '{'; /* } */ x.len(); \"}\\\"\"; '\\'' ", "}"),
    "go": (
        "func (c *Client) Get(o struct{ A int }) map[string]struct{} {",
        "\n\ts := `}` // }\n\treturn nil\n",
        "}",
    ),
    "cpp": (
        "std::map<int, A> A::f(B b = B{}) const noexcept {",
        " if (x) { y(); } // }\n char c = '}'; ",
        "}",
    ),
    "typescript": (
        "const f = ({ a }: { a: number }): { v: RegExp } => {",
        " return { v: /[/}]\\{/g }; ",
        "};",
    ),
    "php": ("function f(array $a = ['}']) {", '\n  # }\n  return "{$a[0]}";\n', "}"),
    "shellscript": ("f() {", " # it's }\n echo ${1#x} '}' \"}\" ", "}"),
    "csharp": ("public int F() {", ' var s = "}"; if (a) { return 1; } return 2; ', "}"),
}


@pytest.mark.req("SYM-09")
@pytest.mark.parametrize("language", BRACES)
def test_the_last_braces_are_the_body(language: str) -> None:
    head, inner, tail = BRACES[language]
    text = f"before();\n  {head}{inner}{tail}\nafter();\n"
    starts = offsets(text)
    begin, stop = text.index(head), text.index("\nafter")
    places = [
        next((n, at - s) for n, s in reversed(list(enumerate(starts))) if s <= at) for at in (begin, stop)
    ]
    body = brace_body(text, places[0], places[1], language)
    assert text[body.start : body.end] == inner
    assert offset_of(starts, places[0], len(text)) == begin
    assert (brace_pairs("{", language), brace_pairs("}", language), brace_pairs("", language)) == (
        None,
        None,
        [],
    )
