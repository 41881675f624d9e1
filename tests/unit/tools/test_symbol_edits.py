"""replace_symbol_body, insert_before_symbol, insert_after_symbol on prepared symbols: exactly these lines change (SYM-09, SYM-10)."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ports import CodeProblem, SymbolPlace, SymbolUse
from opendev.core.scope import Scope
from opendev.core.tool import ToolContext, ToolResult
from opendev.tools import (
    edit_file,
    find_referencing_symbols,
    insert_after_symbol,
    insert_before_symbol,
    replace_symbol_body,
    write_file,
)
from support.tool_context import FakeSymbols, make_context

PYTHON = dedent(
    '''\
    import os


    @decorated(
        "x: y"
    )
    def plain(a: int = {1: 2}[1],
              b=None) -> dict[str, int]:
        """Says: what.

        More.
        """
        # first
        x = a
        return {"é": x}  # kept


    class Box:
        """A box."""

        size = 1

        def get(self):
            return self.size

        async def put(self, v): self.size = v


    VALUE = [
        1,
    ]
    '''
)
SCRIPT = (
    "/** Doc. */\nexport function f(o: { a: number }): { v: number } {\n\tconst s = `}`; // }\n\treturn { v: o.a };\n}\n"
    "\nclass A {\n\tx = 1;\n\n\t@dec\n\tm(): void { this.x = 2; }\n}\n"
)


def symbol(
    text: str, path: str, name_path: str, first: str, last: str, kind: str = "function"
) -> SymbolPlace:
    """The symbol whose definition runs from ``first`` to the end of the next ``last``."""

    def at(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1

    begin = text.index(first)
    stop = text.index(last, begin) + len(last)
    name = name_path.rpartition(".")[2]
    line, column = at(text.index(name, begin))
    return SymbolPlace(
        name=name, name_path=name_path, kind=kind, path=path, line=line + 1, column=column + 1,
        body=text[begin:stop][:200], start=at(begin), end=at(stop),
    )  # fmt: skip


def python(text: str = PYTHON) -> tuple[SymbolPlace, ...]:
    return (
        symbol(text, "a.py", "plain", "def plain", "x}"),
        symbol(text, "a.py", "Box", "class Box", "= v", "class"),
        symbol(text, "a.py", "get", "def get", "self.size", "method"),
        symbol(text, "a.py", "put", "async def put", "= v", "method"),
        symbol(text, "a.py", "VALUE", "VALUE", "VALUE", "variable"),
    )


def script(text: str = SCRIPT) -> tuple[SymbolPlace, ...]:
    return (
        symbol(text, "a.ts", "f", "export function f", "a };\n}"),
        symbol(text, "a.ts", "m", "m(): void", "2; }", "method"),
        symbol(text, "a.ts", "x", "x = 1;", "x = 1;", "property"),
    )


def context(
    tmp_path: Path, path: str, text: str, places: tuple[SymbolPlace, ...], **more: Any
) -> ToolContext:
    if "\r\n" in text:
        places = tuple(p.model_copy(update={"body": p.body.replace("\n", "\r\n")}) for p in places)
    (tmp_path / path).write_bytes(text.encode())
    return make_context(tmp_path, symbols=FakeSymbols(places=places), **more)


async def replaced(
    ctx: ToolContext, name: str, body: str, *, keep: bool = True, path: str = "a.py"
) -> ToolResult:
    args = replace_symbol_body.Args(symbol_name=name, file_path=path, new_body=body, preserve_signature=keep)
    return await replace_symbol_body.run(args, ctx)


@pytest.mark.req("SYM-09")
@pytest.mark.parametrize(
    ("name", "body", "old", "new"),
    [
        ("plain", "y = 1\nif y:\n    return {}", '    # first\n    x = a\n    return {"é": x}',
         "    y = 1\n    if y:\n        return {}"),
        ("plain", '"""New."""\nreturn {}', PYTHON[PYTHON.index('    """Says') : PYTHON.index("  # kept")],
         '    """New."""\n    return {}'),
        ("get", "        s = '''\n  raw\n'''\n        return s", "        return self.size",
         "        s = '''\n  raw\n'''\n        return s"),
        ("get", "s = 1\n        return s", "        return self.size", "        s = 1\n        return s"),
        ("put", "self.size = v\nreturn 1", "put(self, v): self.size = v",
         "put(self, v):\n        self.size = v\n        return 1"),
        ("Box", "pass", PYTHON[PYTHON.index("    size = 1") : PYTHON.index("\n\n\nVALUE")], "    pass"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_python_body_is_replaced_and_nothing_else(
    tmp_path: Path, name: str, body: str, old: str, new: str, newline: str
) -> None:
    ctx = context(tmp_path, "a.py", PYTHON.replace("\n", newline), python())
    result = await replaced(ctx, name, body)
    assert result.ok, result.text
    expected = PYTHON.replace(old, new, 1)
    if name == "Box":  # the docstring is kept, what followed it goes
        expected = PYTHON.replace("\n\n" + old, "\n" + new, 1)
    if name == "plain" and "New" not in body:
        assert '"""Says: what.\n\n    More.\n    """\n' in expected
    assert (tmp_path / "a.py").read_bytes().decode() == expected.replace("\n", newline)
    assert result.changed == ("a.py",)


@pytest.mark.req("SYM-09")
@pytest.mark.parametrize(
    ("name", "body", "old", "new"),
    [
        ("f", "return { v: 1 };", "\n\tconst s = `}`; // }\n\treturn { v: o.a };\n", "\n\treturn { v: 1 };\n"),
        ("f", "{\n  return { v: 1 };\n}", "\n\tconst s = `}`; // }\n\treturn { v: o.a };\n", "\n\treturn { v: 1 };\n"),
        ("m", "this.x = 3;", "{ this.x = 2; }", "{\n\t\tthis.x = 3;\n\t}"),
    ],
)  # fmt: skip
async def test_a_body_in_braces_is_replaced(tmp_path: Path, name: str, body: str, old: str, new: str) -> None:
    ctx = context(tmp_path, "a.ts", SCRIPT, script())
    result = await replaced(ctx, name, body, path="a.ts")
    assert result.ok, result.text
    assert (tmp_path / "a.ts").read_text() == SCRIPT.replace(old, new, 1)


@pytest.mark.req("SYM-09")
async def test_without_the_signature_the_whole_definition_is_replaced(tmp_path: Path) -> None:
    ctx = context(tmp_path, "a.py", PYTHON, python())
    result = await replaced(ctx, "get", "@property\ndef got(self):\n    return 2\n", keep=False)
    assert result.ok, result.text
    assert (tmp_path / "a.py").read_text() == PYTHON.replace(
        "    def get(self):\n        return self.size", "    @property\n    def got(self):\n        return 2"
    )
    text = "export const g = () => {\n  return 1;\n};\n"
    ctx = context(tmp_path, "b.ts", text, (symbol(text, "b.ts", "g", "g =", "\n}", "constant"),))
    assert (await replaced(ctx, "g", "export const g = () => 2", keep=False, path="b.ts")).ok
    assert (tmp_path / "b.ts").read_text() == "export const g = () => 2;\n"


@pytest.mark.parametrize(
    ("name", "body", "path", "words"),
    [
        ("plain", "def plain():\n    pass", "a.py", "begins with the signature"),
        ("plain", "return (", "a.py", "no longer be valid Python"),
        ("VALUE", "1", "a.py", "No function or class"),
        ("f", "export function f(o: { a: number }): { v: number } { }", "a.ts", "begins with the signature"),
        ("f", "if (x) {", "a.ts", "do not balance"),
        ("x", "2", "a.ts", "no body in braces"),
        ("absent", "1", "a.py", "not defined in a.py"),
        ("pl*", "1", "a.py", "wildcard"),
        ("plain", "pass", "../a.py", "outside"),
    ],
)
async def test_what_cannot_be_done_for_sure_changes_nothing(
    tmp_path: Path, name: str, body: str, path: str, words: str
) -> None:
    (tmp_path / "a.ts").write_text(SCRIPT)
    ctx = context(tmp_path, "a.py", PYTHON, (*python(), *script()))
    with pytest.raises(OpenDevError) as caught:
        await replaced(ctx, name, body, path=path)
    assert words in str(caught.value)
    assert ((tmp_path / "a.py").read_text(), (tmp_path / "a.ts").read_text()) == (PYTHON, SCRIPT)


@pytest.mark.req("SYM-12")
async def test_the_rules_of_edit_file_hold(tmp_path: Path) -> None:
    ctx = context(tmp_path, "a.py", PYTHON, python(), scope=Scope(may=("src/**",)))
    with pytest.raises(OpenDevError) as caught:
        await replaced(ctx, "get", "return 1")
    assert caught.value.info.kind is ErrorKind.SCOPE
    ctx = context(tmp_path, "a.py", PYTHON, python())
    ctx.seen.record(tmp_path / "a.py", b"what the agent saw")
    with pytest.raises(OpenDevError) as caught:
        await replaced(ctx, "get", "return 1")
    assert caught.value.info.kind is ErrorKind.CONFLICT
    ctx = context(tmp_path, "a.py", "# new line\n" + PYTHON, python())  # the server's answer is stale
    with pytest.raises(OpenDevError, match="changed while"):
        await replaced(ctx, "get", "return 1")
    assert (tmp_path / "a.py").read_text() == "# new line\n" + PYTHON
    ctx = context(tmp_path, "a.py", PYTHON, python())
    assert (await replaced(ctx, "get", "return 1")).ok
    ctx.seen.assert_fresh(
        tmp_path / "a.py", (tmp_path / "a.py").read_bytes()
    )  # its own change is known to the agent
    double = (*python(), python()[0].model_copy(update={"line": 99}))
    ctx = context(tmp_path, "a.py", PYTHON, double)
    with pytest.raises(OpenDevError, match="not unique"):
        await replaced(ctx, "plain", "return 1")


@pytest.mark.req("SYM-10")
@pytest.mark.parametrize(
    ("tool", "name", "content", "anchor", "expected"),
    [
        (insert_before_symbol, "plain", "def g():\n    pass\n", "\n\n@decorated", "\n\ndef g():\n    pass\n\n\n@decorated"),
        (insert_after_symbol, "plain", "def g():\n    pass", "# kept\n", "# kept\n\n\ndef g():\n    pass\n"),
        (insert_before_symbol, "get", "    def g(self):\n        pass", "1\n\n    def get",
         "1\n\n    def g(self):\n        pass\n\n    def get"),
        (insert_after_symbol, "get", "def g(self):\n    pass", "return self.size\n",
         "return self.size\n\n    def g(self):\n        pass\n"),
        (insert_after_symbol, "put", "def g(self):\n    pass", "= v\n", "= v\n\n    def g(self):\n        pass\n"),
        (insert_after_symbol, "VALUE", "OTHER = 2", "    1,\n]\n", "    1,\n]\nOTHER = 2\n"),
        (insert_before_symbol, "VALUE", "OTHER = 2", "VALUE", "OTHER = 2\nVALUE"),
        (insert_after_symbol, "VALUE", "def g(): ...", "    1,\n]\n", "    1,\n]\n\n\ndef g(): ...\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_python_is_inserted_at_its_place(
    tmp_path: Path, tool: Any, name: str, content: str, anchor: str, expected: str, newline: str
) -> None:
    ctx = context(tmp_path, "a.py", PYTHON.replace("\n", newline), python())
    result = await tool.run(tool.Args(symbol_name=name, file_path="a.py", content=content), ctx)
    assert result.ok, result.text
    wanted = PYTHON.replace(anchor, expected, 1).replace("\n", newline)
    assert (tmp_path / "a.py").read_bytes().decode() == wanted


@pytest.mark.req("SYM-10")
@pytest.mark.parametrize(
    ("tool", "name", "content", "anchor", "expected"),
    [
        (insert_before_symbol, "f", "const a = 1;", "/** Doc. */", "const a = 1;\n\n/** Doc. */"),
        (insert_after_symbol, "f", "function g() {\n}\n", "a };\n}\n", "a };\n}\n\nfunction g() {\n}\n"),
        (insert_before_symbol, "m", "n() {}", "\t@dec", "\tn() {}\n\n\t@dec"),
        (insert_after_symbol, "m", "n() {}", "2; }\n", "2; }\n\n\tn() {}\n"),
        (insert_before_symbol, "x", "y = 1;", "\tx = 1", "\ty = 1;\n\tx = 1"),
    ],
)  # fmt: skip
async def test_braces_are_inserted_at_their_place(
    tmp_path: Path, tool: Any, name: str, content: str, anchor: str, expected: str
) -> None:
    ctx = context(tmp_path, "a.ts", SCRIPT, script())
    result = await tool.run(tool.Args(symbol_name=name, file_path="a.ts", content=content), ctx)
    assert result.ok, result.text
    assert (tmp_path / "a.ts").read_text() == SCRIPT.replace(anchor, expected, 1)


@pytest.mark.req("SYM-07")
async def test_references_are_grouped_by_file(tmp_path: Path) -> None:
    uses = tuple(
        SymbolUse(path=p, line=n, column=2, text=f"use {n}")
        for p, n in [("a.py", 1), ("b.py", 3), ("b.py", 4)]
    )
    (tmp_path / "a.py").write_text(PYTHON)
    ctx = make_context(tmp_path, symbols=FakeSymbols(places=python(), uses=uses))
    args = find_referencing_symbols.Args(symbol_name="plain", file_path="a.py")
    result = await find_referencing_symbols.run(args, ctx)
    assert result.text == (
        "3 references to plain in 2 files:\n\na.py:\n  1:2: use 1\n\nb.py:\n  3:2: use 3\n  4:2: use 4"
    )
    row = {"line": 1, "column": 2, "text": "use 1"}
    assert result.data is not None
    assert (result.data["total"], result.data["files"]["a.py"]) == (3, [row])


@pytest.mark.req("FIL-10")
async def test_errors_after_an_edit_are_told_at_most_twenty(tmp_path: Path) -> None:
    errors = tuple(CodeProblem(line=n, column=1, message="undefined variable 'foo'") for n in range(1, 31))
    symbols = FakeSymbols(errors={"a.txt": errors, "b.txt": ()})
    ctx = make_context(tmp_path, symbols=symbols)
    result = await write_file.TOOL.run(write_file.Args(file_path="a.txt", content="one\n"), ctx)
    assert result.ok
    assert "LSP errors detected in a.txt:\nline 1: undefined variable 'foo'\nline 2" in result.text
    assert (result.text.count("undefined"), len((result.data or {})["problems"])) == (20, 20)
    edit = edit_file.Args(file_path="a.txt", old_content="one", new_content="two")
    assert "LSP errors" in (await edit_file.TOOL.run(edit, ctx)).text
    for path in ("b.txt", "c.txt"):  # no errors; nothing known
        result = await write_file.TOOL.run(write_file.Args(file_path=path, content="one\n"), ctx)
        assert "LSP" not in result.text
    failed = await edit_file.TOOL.run(edit, ctx)
    assert not failed.ok
    assert "LSP" not in failed.text


@pytest.mark.req("SYM-09")
async def test_a_body_that_leaves_code_out_is_refused(tmp_path: Path) -> None:
    ctx = context(tmp_path, "a.ts", SCRIPT, script())
    with pytest.raises(OpenDevError, match="leaves code out"):
        await replaced(ctx, "f", "const t = 1;\n// ... existing code ...\nreturn { v: t };", path="a.ts")
    assert (tmp_path / "a.ts").read_text() == SCRIPT
