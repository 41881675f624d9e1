"""The six symbol tools with real language servers of six languages; those that are not installed are skipped (SYM-11)."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opendev.core.ports import CodeProblem
from opendev.core.tool import ToolContext
from opendev.tools import (
    edit_file,
    find_referencing_symbols,
    find_symbol,
    insert_after_symbol,
    insert_before_symbol,
    rename_symbol,
    replace_symbol_body,
)
from opendev.tools.lsp.symbols import LspSymbols
from opendev.tools.shell.reap import family
from support.tool_context import make_context

pytestmark = [pytest.mark.slow, pytest.mark.soak]
MARKER = {"OPENDEV_RUN": f"test-language-servers-{os.getpid()}"}  # two runs of the tests do not meet
PATH = f"{Path.home() / '.cache/opendev-test/node_modules/.bin'}:/usr/local/bin:/usr/bin:/bin"
FILES = {
    "shop.py": "class Shop:\n    def open(self) -> int:\n        return 1\n\n\ndef main() -> int:\n    return Shop().open()\n",
    "use.py": 's = "😀"; from shop import Shop; t = Shop().open()  # Shop\n',
    "web/a.ts": (
        "/** A circle. */\nexport class Circle {\n  constructor(private r: number) {}\n\n  area(): number {\n"
        "    return this.r; // }\n  }\n}\n\nexport const double = (n: number): { v: number } => {\n  const s = '}';\n"
        "  return { v: n * 2 };\n};\n"
    ),
    "web/b.ts": 'import { Circle } from "./a";\nconst s = "😀"; const c: Circle = new Circle(1); // Circle\nconsole.log(s, c.area());\n',
    "web/tsconfig.json": '{"compilerOptions": {"strict": true}}\n',
    "run.sh": "#!/bin/bash\n# a }\ngreet() {\n  echo \"hi ${1#x}\" '}'\n}\n\nmain() {\n  greet you\n}\nmain\n",
    "lib/shape.h": "#pragma once\nint area(int side);\n",
    "lib/shape.cpp": '#include "shape.h"\n\n// area of "}"\nint area(int side) {\n  const char *s = "}"; (void)s;\n  return side * side;\n}\n',
    "lib/main.cpp": '#include "shape.h"\n\nint main() {\n  const char *s = "😀"; return area(3) + (s == nullptr);\n}\n',
    "lib/compile_flags.txt": "-std=c++17\n",
    "php/Till.php": (
        "<?php\nclass Till\n{\n    /** All of it. */\n    public function total(int $n): int\n    {\n        return $n; // }\n    }\n}\n"
    ),
    "php/use.php": "<?php\nrequire 'Till.php';\n$s = '😀'; $till = new Till(); echo $till->total(2); // Till\n",
    "conf.yaml": "server:\n  port: 1\n",
}


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[ToolContext]:
    root = tmp_path / "project"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    symbols = LspSymbols(env=env, cache_dir=tmp_path / "cache", path=PATH, marker=MARKER)
    yield make_context(root, symbols=symbols)
    await symbols.close()
    assert family(marker=MARKER) == ()


def needs(program: str) -> None:
    if shutil.which(program, path=PATH) is None:
        pytest.skip(f"{program} is not installed; scripts/test-programs installs it")


async def found(ctx: ToolContext, name: str, path: str = "") -> list[str]:
    result = await find_symbol.run(find_symbol.Args(symbol_name=name, file_path=path), ctx)
    return [
        f"{m['kind']} {m['name_path']} {m['path']}:{m['line']}"
        for m in (result.data or {"matches": []})["matches"]
    ]


async def references(ctx: ToolContext, name: str, path: str, *, declaration: bool = False) -> list[str]:
    args = find_referencing_symbols.Args(symbol_name=name, file_path=path, include_declaration=declaration)
    result = await find_referencing_symbols.run(args, ctx)
    assert result.data is not None
    return [
        f"{file}:{use['line']}:{use['column']}" for file, uses in result.data["files"].items() for use in uses
    ]


@pytest.mark.req("SYM-07")
@pytest.mark.req("SYM-09")
@pytest.mark.req("SYM-10")
@pytest.mark.req("FIL-10")
async def test_python(ctx: ToolContext) -> None:
    assert await references(ctx, "Shop", "shop.py") == ["shop.py:7:12", "use.py:1:27", "use.py:1:37"]
    assert len(await references(ctx, "Shop.open", "shop.py", declaration=True)) == 3
    body = replace_symbol_body.Args(symbol_name="Shop.open", file_path="shop.py", new_body="return missing")
    result = await replace_symbol_body.run(body, ctx)
    assert 'LSP errors detected in shop.py:\nline 3: "missing" is not defined' in result.text
    edit = edit_file.Args(file_path="shop.py", old_content="missing", new_content="2")
    assert "LSP" not in (await edit_file.TOOL.run(edit, ctx)).text
    after = insert_after_symbol.Args(
        symbol_name="open", file_path="shop.py", content="def shut(self) -> int:\n    return 0"
    )
    assert (await insert_after_symbol.run(after, ctx)).ok
    before = insert_before_symbol.Args(symbol_name="main", file_path="shop.py", content="LIMIT = 3")
    assert (await insert_before_symbol.run(before, ctx)).ok
    assert (ctx.root / "shop.py").read_text() == (
        "class Shop:\n    def open(self) -> int:\n        return 2\n\n    def shut(self) -> int:\n        return 0\n\n\n"
        "LIMIT = 3\n\n\ndef main() -> int:\n    return Shop().open()\n"
    )
    rename = rename_symbol.Args(symbol_name="Shop", file_path="shop.py", new_name="Store")
    assert (await rename_symbol.run(rename, ctx)).ok
    assert (
        ctx.root / "use.py"
    ).read_text() == 's = "😀"; from shop import Store; t = Store().open()  # Shop\n'


async def test_typescript(ctx: ToolContext) -> None:
    needs("typescript-language-server")
    assert await found(ctx, "Circle") == ["class Circle web/a.ts:2"]
    assert await references(ctx, "Circle", "web/a.ts") == ["web/b.ts:1:10", "web/b.ts:2:25", "web/b.ts:2:38"]
    body = replace_symbol_body.Args(
        symbol_name="double", file_path="web/a.ts", new_body="return { v: missing };"
    )
    assert (await replace_symbol_body.run(body, ctx)).ok
    problems: tuple[CodeProblem, ...] = ()
    for _ in range(
        5
    ):  # this server does not say of which version its diagnostics are, and a busy machine is slow
        problems = await ctx.symbols.problems(ctx.root, "web/a.ts") or ()
        if problems:
            break
    assert [one.message for one in problems] == ["Cannot find name 'missing'."]
    args = insert_after_symbol.Args(
        symbol_name="Circle.area", file_path="web/a.ts", content="zero() {\n  return 0;\n}"
    )
    assert (await insert_after_symbol.run(args, ctx)).ok
    rename = rename_symbol.Args(symbol_name="Circle", file_path="web/a.ts", new_name="Round")
    result = await rename_symbol.run(rename, ctx)
    assert result.changed == ("web/a.ts", "web/b.ts")
    assert (ctx.root / "web/b.ts").read_text() == FILES["web/b.ts"].replace("Circle", "Round").replace(
        "// Round", "// Circle"
    )
    assert (ctx.root / "web/a.ts").read_text() == (
        "/** A circle. */\nexport class Round {\n  constructor(private r: number) {}\n\n  area(): number {\n"
        "    return this.r; // }\n  }\n\n  zero() {\n    return 0;\n  }\n}\n\nexport const double = (n: number): { v: number } => {\n"
        "  return { v: missing };\n};\n"
    )


async def test_bash(ctx: ToolContext) -> None:
    needs("bash-language-server")
    assert await found(ctx, "greet") == ["function greet run.sh:3"]
    assert await references(ctx, "greet", "run.sh") == ["run.sh:8:3"]
    body = replace_symbol_body.Args(symbol_name="greet", file_path="run.sh", new_body='echo "$1"')
    assert (await replace_symbol_body.run(body, ctx)).ok
    rename = rename_symbol.Args(symbol_name="greet", file_path="run.sh", new_name="welcome")
    assert (await rename_symbol.run(rename, ctx)).ok
    assert (ctx.root / "run.sh").read_text() == (
        '#!/bin/bash\n# a }\nwelcome() {\n  echo "$1"\n}\n\nmain() {\n  welcome you\n}\nmain\n'
    )


@pytest.mark.req("SYM-03", "SYM-11")
async def test_cpp(ctx: ToolContext) -> None:
    needs("clangd")
    assert "function area lib/shape.cpp:4" in await found(ctx, "area", "lib/shape.cpp")
    assert "lib/main.cpp:4:31" in await references(ctx, "area", "lib/shape.cpp")
    body = replace_symbol_body.Args(symbol_name="area", file_path="lib/shape.cpp", new_body="return missing;")
    result = await replace_symbol_body.run(body, ctx)
    assert "line 5: Use of undeclared identifier 'missing'" in result.text
    edit = edit_file.Args(file_path="lib/shape.cpp", old_content="missing", new_content="side")
    assert "LSP" not in (await edit_file.TOOL.run(edit, ctx)).text
    rename = rename_symbol.Args(symbol_name="area", file_path="lib/shape.cpp", new_name="surface")
    result = await rename_symbol.run(rename, ctx)
    assert result.changed == ("lib/main.cpp", "lib/shape.cpp", "lib/shape.h"), result.text
    assert (ctx.root / "lib/main.cpp").read_text() == FILES["lib/main.cpp"].replace("area", "surface")
    assert (ctx.root / "lib/shape.cpp").read_text() == (
        '#include "shape.h"\n\n// area of "}"\nint surface(int side) {\n  return side;\n}\n'
    )


@pytest.mark.req("SYM-03", "SYM-11")
async def test_php(ctx: ToolContext) -> None:
    needs("intelephense")
    assert await found(ctx, "Till.total", "php/Till.php") == ["method Till.total php/Till.php:5"]
    assert await references(ctx, "Till", "php/Till.php") == ["php/use.php:3:23"]
    after = insert_after_symbol.Args(
        symbol_name="Till.total",
        file_path="php/Till.php",
        content="public function none(): int\n{\n    return 0;\n}",
    )
    assert (await insert_after_symbol.run(after, ctx)).ok
    body = replace_symbol_body.Args(
        symbol_name="Till.total", file_path="php/Till.php", new_body="return 2 * $n;"
    )
    assert (await replace_symbol_body.run(body, ctx)).ok
    assert (ctx.root / "php/Till.php").read_text() == (
        "<?php\nclass Till\n{\n    /** All of it. */\n    public function total(int $n): int\n    {\n        return 2 * $n;\n    }\n"
        "\n    public function none(): int\n    {\n        return 0;\n    }\n}\n"
    )


async def test_yaml_is_experimental(ctx: ToolContext) -> None:
    needs("yaml-language-server")
    assert await found(ctx, "port", "conf.yaml") == ["number server.port conf.yaml:2"]
    assert not any("conf.yaml" in row for row in await found(ctx, "port"))  # it was not asked for by name
