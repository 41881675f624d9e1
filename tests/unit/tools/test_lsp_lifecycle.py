"""Language servers that crash, hang, index, talk nonsense or answer about old text; the table of servers; the cache (X14, X16, X18)."""

import asyncio
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import support.tool_context
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ports import SymbolPlace
from opendev.tools.catalog import BUILTIN
from opendev.tools.lsp import cache as cache_module
from opendev.tools.lsp import servers
from opendev.tools.lsp.cache import SymbolCache, key_of
from opendev.tools.lsp.servers import SERVERS, SUFFIXES, server_for
from opendev.tools.lsp.symbols import LspSymbols
from opendev.tools.shell.reap import family

MARKER = {"OPENDEV_RUN": f"test-lsp-lifecycle-{os.getpid()}"}  # two runs of the tests do not meet
LINE = 's = "😀"; name = 1  # 漢\n'


class Bench:
    """A project with one file and a scripted server on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.log = folder, folder / "project", folder / "log"
        self.root.mkdir()
        (self.root / "a.py").write_text(LINE)
        self.symbols: list[LspSymbols] = []

    def make(self, fault: str, *, idle_s: float = 600.0, diagnostics: bool = True) -> LspSymbols:
        program = self.folder / "bin" / "pyright-langserver"
        program.parent.mkdir(exist_ok=True)
        script = Path(support.tool_context.__file__).with_name("language_server.py")
        text = f"#!/bin/sh\nexec '{sys.executable}' '{script}' {fault} '{self.log}'\n"
        if (
            not program.exists() or program.read_text() != text
        ):  # a changed server would not be asked from the cache
            program.write_text(text)
            program.chmod(0o755)
        made = LspSymbols(
            env={"PATH": "/usr/bin:/bin"}, cache_dir=self.folder / "cache", path=str(program.parent), marker=MARKER,
            idle_s=idle_s, diagnostics=diagnostics,
        )  # fmt: skip
        self.symbols.append(made)
        return made

    def lines(self, word: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(word)]


@pytest.fixture
async def bench(tmp_path: Path):
    made = Bench(tmp_path)
    yield made
    for one in made.symbols:
        await one.close()
    assert family(marker=MARKER) == ()


PLACE = SymbolPlace(name="name", name_path="name", kind="variable", path="a.py", line=1, column=10)


@pytest.mark.req("SYM-04")
async def test_columns_are_utf16_both_ways_and_noise_is_skipped(bench: Bench) -> None:  # X14, X01
    symbols = bench.make("noise")
    (found,) = await symbols.find(bench.root, "name", None)
    assert (found.line, found.column, found.start, found.end) == (1, 10, (0, 8), (0, 16))
    (use,) = await symbols.references(bench.root, found, include_declaration=True)
    assert (use.path, use.line, use.column) == ("a.py", 1, 10)
    assert bench.lines("references") == ["references {'line': 0, 'character': 10}"]
    assert bench.lines("initialize") == [f"initialize {os.getpid()}"]
    await symbols.close()
    assert bench.lines("exit") == ["exit"]


@pytest.mark.req("SYM-03")
async def test_ten_questions_at_once_start_one_server(bench: Bench) -> None:  # X16
    symbols = bench.make("slow")
    answers = await asyncio.gather(
        *(symbols.references(bench.root, PLACE, include_declaration=True) for _ in range(10))
    )
    assert len(bench.lines("start")) == 1
    assert len(set(answers)) == 1


@pytest.mark.req("SYM-03")
async def test_a_server_that_dies_during_a_question_is_replaced_without_a_word(bench: Bench) -> None:
    symbols = bench.make("dies-once")
    assert len(await symbols.references(bench.root, PLACE, include_declaration=True)) == 1
    assert len(bench.lines("start")) == 2


@pytest.mark.req("SYM-03")
async def test_a_crash_loop_is_slowed_down_and_told(bench: Bench) -> None:
    symbols = bench.make("crash")
    messages = list[str]()
    for _ in range(8):
        with pytest.raises(OpenDevError) as caught:
            await symbols.find(bench.root, "name", "a.py")
        assert caught.value.info.kind is ErrorKind.INFRA
        messages.append(str(caught.value))
    assert "no licence for this machine" in messages[0]
    assert "times in a row" in messages[-1]
    assert len(bench.lines("start")) <= 5


async def test_an_idle_server_is_ended(bench: Bench) -> None:  # X16
    symbols = bench.make("plain", idle_s=0.2)
    await symbols.references(bench.root, PLACE, include_declaration=True)
    assert family(marker=MARKER) != ()
    for _ in range(100):
        if family(marker=MARKER) == ():
            break
        await asyncio.sleep(0.05)
    assert family(marker=MARKER) == ()
    await symbols.references(bench.root, PLACE, include_declaration=True)


async def test_an_answer_while_the_project_is_read_is_not_taken_for_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:  # X18
    known = servers._BY_SUFFIX  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(known, ".py", replace(known[".py"], wait_s=0.5))
    symbols = bench.make("indexing")
    await symbols.find(bench.root, "name", None)  # a file's own symbols need no index
    with pytest.raises(OpenDevError) as caught:
        await symbols.references(bench.root, PLACE, include_declaration=True)
    assert caught.value.info.kind is ErrorKind.TIMEOUT
    assert "still indexing" in str(caught.value)


@pytest.mark.req("FIL-10")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("stale", ["error of version 2"]),
        ("silent", None),
        ("many", ["burst 2"]),
        ("unversioned", ["of the text that was told last"]),
        ("warning", []),
    ],
)
async def test_diagnostics_are_of_the_present_text(
    bench: Bench, fault: str, expected: list[str] | None
) -> None:
    symbols = bench.make(fault)
    loop = asyncio.get_running_loop()
    assert await symbols.problems(bench.root, "a.py") is None  # no server runs: none is started
    assert not bench.log.exists()
    await symbols.references(bench.root, PLACE, include_declaration=True)
    (bench.root / "a.py").write_text("nam = 1\n" + LINE)
    begun = loop.time()
    found = await symbols.problems(bench.root, "a.py")
    assert loop.time() - begun < 2.5
    assert (None if found is None else [one.message for one in found]) == expected


@pytest.mark.req("FIL-10")
async def test_diagnostics_can_be_switched_off(bench: Bench) -> None:
    symbols = bench.make("many", diagnostics=False)
    await symbols.references(bench.root, PLACE, include_declaration=True)
    assert await symbols.problems(bench.root, "a.py") is None


@pytest.mark.req("SYM-05")
async def test_known_content_needs_no_server_and_a_foreign_cache_is_dropped(bench: Bench) -> None:
    first = await bench.make("plain").find(bench.root, "name", None)
    (bench.root / "b.py").write_text(LINE)  # the same content in another file
    again = await bench.make("plain").find(bench.root, "name", "b.py")
    assert [one.path for one in (*first, *again)] == ["a.py", "b.py"]
    assert again[0].model_copy(update={"path": "a.py"}) == first[0]
    assert len(bench.lines("start")) == 1
    folder = bench.folder / "cache" / "lsp" / "python"
    (tree,), (raw,) = folder.glob("tree/*"), folder.glob("raw/*")
    tree.unlink()  # the second level is made of the first
    assert await bench.make("plain").find(bench.root, "name", "a.py") == first
    assert len(bench.lines("start")) == 1
    for file in (tree, raw):
        file.write_text(json.dumps({**json.loads(file.read_text()), "version": 0}))
    assert await bench.make("plain").find(bench.root, "name", "a.py") == first
    assert len(bench.lines("start")) == 2
    for file in (tree, raw):
        assert json.loads(file.read_text())["version"] == cache_module.VERSION
        assert file.stat().st_mode & 0o077 == 0
        file.write_bytes(b"\x80\x04cos\nsystem\n")  # a planted pickle is no JSON
    assert await bench.make("plain").find(bench.root, "name", "a.py") == first


@pytest.mark.req("SYM-05")
def test_the_cache_is_bounded(tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path, max_entries=20)
    for number in range(60):
        cache.put_raw("x", key_of(str(number), "server"), [], "utf-8")
    assert 15 <= len(list(tmp_path.glob("x/raw/*"))) <= 22
    assert cache.raw("x", key_of("59", "server")) == ([], "utf-8")
    assert cache.raw("x", key_of("59", "another server")) is None


@pytest.mark.req("SYM-11")
def test_the_table_of_languages() -> None:
    assert len(SERVERS) == len({one.language for one in SERVERS}) == 32
    assert len(SUFFIXES) == sum(len(one.suffixes) for one in SERVERS)  # no extension has two servers
    assert len(SUFFIXES) >= 30
    assert [one.language for one in SERVERS if one.experimental] == ["markdown", "yaml"]
    for one in SERVERS:
        assert one.install
        assert all(command and all(command) for command in one.commands)
    ids = {
        path: spec.language_id(path)
        for path in ("a.tsx", "a.js", "x.h", "x.cpp", "A.PY")
        if (spec := server_for(path))
    }
    assert ids == {
        "a.tsx": "typescriptreact",
        "a.js": "javascript",
        "x.h": "c",
        "x.cpp": "cpp",
        "A.PY": "python",
    }
    assert server_for("target/a.rs") is None
    assert server_for("a.unknown") is None


@pytest.mark.req("SYM-12")
@pytest.mark.parametrize("spec", SERVERS, ids=lambda spec: spec.language)
async def test_a_missing_server_is_named_for_every_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: servers.ServerSpec
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    name = f"file{min(spec.suffixes)}"
    (tmp_path / name).write_text("word\n")
    symbols = LspSymbols(env={}, cache_dir=tmp_path / "cache", path=str(tmp_path))
    with pytest.raises(OpenDevError) as caught:
        await symbols.find(tmp_path, "word", name)
    assert caught.value.info.kind is ErrorKind.NOT_FOUND
    assert spec.commands[0][0] in str(caught.value)
    assert spec.install in caught.value.info.hint
    whole_project = symbols.find(tmp_path, "word", None)
    if spec.experimental:  # never asked without being named
        assert await whole_project == ()
    else:
        with pytest.raises(OpenDevError, match="could not be asked about"):
            await whole_project


async def test_nonsense_is_a_readable_failure(bench: Bench) -> None:
    symbols = bench.make("nonsense")
    for _ in range(2):
        with pytest.raises(OpenDevError, match="an answer that is none") as caught:
            await symbols.find(bench.root, "name", "a.py")
        assert caught.value.info.kind is ErrorKind.TOOL
    assert await symbols.problems(bench.root, "a.py") is None
    assert len(bench.lines("start")) == 1


@pytest.mark.req("FIL-10")
async def test_other_files_are_renewed_before_diagnostics(bench: Bench) -> None:  # X18
    (bench.root / "b.py").write_text(LINE)
    symbols = bench.make("many")
    await symbols.references(bench.root, PLACE, include_declaration=True)  # both files are open now
    (bench.root / "b.py").write_text("name = 2\n")  # by a command, say
    (bench.root / "a.py").write_text("name = 3\n")
    await symbols.problems(bench.root, "a.py")
    assert sorted(bench.lines("opened")[-2:]) == ["opened a.py 2", "opened b.py 2"]


@pytest.mark.req("SYM-01")
def test_four_layers_each_of_which_knows_the_next_only() -> None:
    """Tools ask the Symbols port; the retriever the pool of servers; a server its client, which alone holds the process."""
    folder = Path(cache_module.__file__).parent
    imports = {
        file: {name.rpartition(".")[2] for name in re.findall(r"^from (\.[\w.]*) import", file.read_text(), re.MULTILINE)}
        for file in (*folder.glob("*.py"), *folder.parent.glob("*.py"))
    }  # fmt: skip
    users = {
        part: {f.stem for f, names in imports.items() if part in names}
        for part in ("client", "server", "pool")
    }
    assert users["client"] == {"server"}
    assert users["server"] <= {"pool", "symbols"}
    assert users["pool"] == {"symbols"}
    assert not any("symbols" in names for file, names in imports.items() if file.parent != folder)
    for tool in (
        "find_symbol",
        "find_referencing_symbols",
        "rename_symbol",
        "replace_symbol_body",
        "insert_before_symbol",
    ):
        args = next(one for one in BUILTIN if one.name == tool).args
        assert {"symbol_name", "file_path"} <= set(args.model_fields)
