#!/usr/bin/env python3
"""Measures a rename across a real package (N-16): rename_symbol against search and edit, in calls, characters and seconds.

    bench/rename.py [--package click] [--symbol Context] [--to CallContext] [--json FILE]

Unpacks the package's source twice. Way A calls find_symbol and rename_symbol. Way B is a patient agent without a language server:
it searches the word (again after each page of matches), reads every file that holds it, and edits every line that names it, one
edit_file a line, or (B2) one edit_file a file with replace_all, which also changes strings and comments. Each way is judged by
the package's own tests before and after. "Characters" are what the tools' results and the calls' arguments put before a model.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from opendev.core.errors import OpenDevError  # noqa: E402 - needs the path above
from opendev.core.tool import ToolContext  # noqa: E402
from opendev.tools import edit_file, find_symbol, read_file, rename_symbol, search  # noqa: E402
from opendev.tools.lsp.symbols import LspSymbols  # noqa: E402
from opendev.tools.schema import parse_args  # noqa: E402
from support.tool_context import make_context  # noqa: E402

TOOLS: dict[str, Any] = {
    one.TOOL.name: one.TOOL for one in (edit_file, find_symbol, read_file, rename_symbol, search)
}
TEST_S = 300


@dataclass
class Way:
    """What one way took, and how it ended."""

    name: str
    calls: int = 0
    failed: int = 0
    characters: int = 0
    seconds: float = 0.0
    tests: str = ""
    left: list[str] = field(default_factory=list[str])

    async def call(self, ctx: ToolContext, name: str, **arguments: Any) -> str:
        """One tool call, counted; its text."""
        self.calls += 1
        tool = TOOLS[name]
        try:
            result = await tool.run(parse_args(tool, arguments), ctx)
            text, ok = result.text, result.ok
        except OpenDevError as error:
            text, ok = str(error), False
        self.failed += not ok
        self.characters += len(json.dumps(arguments)) + len(text)
        return text


def main() -> int:
    """Measure all ways and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", default="click")
    parser.add_argument("--symbol", default="Context")
    parser.add_argument("--to", default="CallContext")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="od-rename-") as folder:
        ways = asyncio.run(measure(options, Path(folder).resolve()))
    print(f"| way | calls | failed | characters | seconds | the package's tests |\n|{'---|' * 6}")
    for way in ways:
        row = (way.name, way.calls, way.failed, f"{way.characters:,}", f"{way.seconds:.1f}", way.tests)
        print(f"| {' | '.join(map(str, row))} |")
    if options.json:
        options.json.write_text(json.dumps([asdict(way) for way in ways], indent=1))
    ratio = ways[2].calls / ways[1].calls
    print(f"search and edit takes {ratio:.1f} times the calls of rename_symbol")
    return 0 if ratio >= 10 and ways[0].tests == ways[1].tests else 1


async def measure(options: argparse.Namespace, work: Path) -> list[Way]:
    """Before, A, B and B2, each in a folder of its own."""
    archive = download(options.package, work)
    ways = [
        Way("before"),
        Way("A: rename_symbol"),
        Way("B: search, read, edit each line"),
        Way("B2: search, read, replace_all"),
    ]
    for number, way in enumerate(ways):
        root = unpack(archive, work / str(number))
        begun = time.perf_counter()
        if number == 1:
            await by_symbol(way, root, work, options)
        elif number > 1:
            await by_search(way, make_context(root), options, whole_file=number == 3)
        way.seconds = time.perf_counter() - begun if number else 0.0
        way.tests = tests(root)
    return ways


async def by_symbol(way: Way, root: Path, work: Path, options: argparse.Namespace) -> None:
    """Find the definition, rename it."""
    symbols = LspSymbols(env={"PATH": "/usr/bin:/bin", "HOME": str(work)}, cache_dir=work / "cache", path="")
    ctx = make_context(root, symbols=symbols)
    try:
        text = await way.call(ctx, "find_symbol", symbol_name=options.symbol)
        path = next(re.finditer(r"^(\S+):\d+:\d+ +class|^(\S+):\d+:\d+ +function", text, re.MULTILINE))[
            0
        ].split(":")[0]
        said = await way.call(
            ctx, "rename_symbol", symbol_name=options.symbol, file_path=path, new_name=options.to
        )
        print(said[:3_000], file=sys.stderr)
    finally:
        await symbols.close()


async def by_search(way: Way, ctx: ToolContext, options: argparse.Namespace, *, whole_file: bool) -> None:
    """Search, read, edit; the agent of this way makes no mistake in what it sends."""
    word = re.compile(rf"\b{options.symbol}\b")
    held = [p for p in sorted(ctx.root.rglob("*.py")) if word.search(p.read_text())]
    await way.call(ctx, "search", pattern=rf"\b{options.symbol}\b", path=".")
    for file in held:
        name = str(file.relative_to(ctx.root))
        await way.call(ctx, "read_file", file_path=name)
        if whole_file:
            arguments = {"old_content": options.symbol, "new_content": options.to, "replace_all": True}
            await way.call(ctx, "edit_file", file_path=name, **arguments)
            continue
        lines = file.read_text().split("\n")
        for number, line in enumerate(lines):
            if not word.search(line):
                continue
            old = unique(lines, number)
            new = word.sub(options.to, old)
            await way.call(ctx, "edit_file", file_path=name, old_content=old, new_content=new)
            lines = file.read_text().split("\n")


def unique(lines: list[str], number: int) -> str:
    """The line with as many lines around it as make it unique in the file."""
    text = "\n".join(lines)
    for around in range(40):
        shown = "\n".join(lines[max(0, number - around) : number + around + 1])
        if text.count(shown) == 1:
            return shown
    return lines[number]


def download(package: str, work: Path) -> Path:
    """The package's source archive."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]
    subprocess.run([*command, "-d", str(work), package], check=True)
    return next(work.glob("*.tar.gz"))


def unpack(archive: Path, target: Path) -> Path:
    """A fresh copy of the source."""
    with tarfile.open(archive) as opened:
        opened.extractall(target, filter="data")
    return next(target.iterdir()).resolve()


def tests(root: Path) -> str:
    """The last line of the package's own tests."""
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(root / "src"),
        "LANG": "C.UTF-8",
        "HOME": str(root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ran = subprocess.run(
        command, cwd=root, env=env, capture_output=True, text=True, timeout=TEST_S, check=False
    )
    last = (ran.stdout.strip().splitlines() or ["do not start"])[-1]
    return re.sub(r" in [\d.]+s.*", "", last.strip("= "))


if __name__ == "__main__":
    raise SystemExit(main())
