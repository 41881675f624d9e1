"""search: text and structure, limits, confinement, and the three engines behind it (FIL-14, FIL-15, TOR-02)."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from opendev.core.tool import ToolResult
from opendev.tools import search_worker
from opendev.tools.search import TOOL, Args
from support.tool_context import make_context


async def found(root: Path, **args: object) -> ToolResult:
    return await TOOL.run(Args.model_validate(args), make_context(root))


def rows(result: ToolResult) -> list[tuple[str, int, str]]:
    assert result.data is not None, result.text
    return [(m["path"], m["line"], m["text"]) for m in result.data["matches"]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    for name, text in {
        "a.py": "import os\nprint(foo(1))\n# foo\n",
        "src/b.py": "def foo(x):\n    if x: return 1\n",
        "src/c.ts": "foo(2);\n",
        ".gitignore": "ignored/\n",
        "ignored/x.py": "foo\n",
        ".git/config": "foo\n",
        ".github/ci.yml": "foo: 1\n",
        ".env": "KEY=foo\n",
        "-odd$(touch m).py": "foo odd\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.py").write_text("foo\n")
    (root / "bin").write_bytes(b"foo\0bar")
    return root


EXPECTED = [
    ("-odd$(touch m).py", 1, "foo odd"),
    (".github/ci.yml", 1, "foo: 1"),
    ("a.py", 2, "print(foo(1))"),
    ("a.py", 3, "# foo"),
    ("src/b.py", 1, "def foo(x):"),
    ("src/c.ts", 1, "foo(2);"),
]


@pytest.mark.req("FIL-14")
async def test_text(root: Path) -> None:
    result = await found(root, pattern="foo")
    # The wheel, unlike rg itself, does not look into hidden folders.
    assert [r for r in sorted(rows(result)) if r[0] != ".github/ci.yml"] == [
        r for r in EXPECTED if r[0] != ".github/ci.yml"
    ]
    assert result.summary.startswith("✓ Search completed (")
    assert "a.py\n  2: print(foo(1))\n  3: # foo" in result.text
    assert not (root / "m").exists()


@pytest.mark.req("FIL-14")
async def test_path_glob_context_and_nothing(root: Path) -> None:
    assert rows(await found(root, pattern="foo", path="src", glob="*.ts")) == [("src/c.ts", 1, "foo(2);")]
    assert rows(await found(root, pattern="foo", path="a.py")) == EXPECTED[2:4]
    around = await found(root, pattern="print", context=1)
    assert "  1- import os\n  2: print(foo(1))\n  3- # foo" in around.text
    none = await found(root, pattern="nowhere_at_all")
    assert (none.ok, none.summary) == (True, "✓ Search completed (no matches)")
    assert rows(await found(root, pattern="-odd|-{2}", path=".")) == []


@pytest.mark.req("FIL-14")
async def test_look_around_works_without_ripgreps_own_engine(root: Path) -> None:
    assert rows(await found(root, pattern=r"foo(?=\(2)")) == [("src/c.ts", 1, "foo(2);")]


@pytest.mark.req("FIL-14")
async def test_a_bad_pattern_is_a_readable_failure(root: Path) -> None:
    result = await found(root, pattern="(")
    assert not result.ok
    assert "cannot be searched for" in result.text


@pytest.mark.req("FIL-14")
async def test_limits(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("hit\n" * 500)
    (tmp_path / "long.txt").write_text("hit" + "x" * 50_000 + "\n")
    many = await found(tmp_path, pattern="hit", path="many.txt")
    assert len(rows(many)) == 50
    assert many.summary == "✓ Search completed (50+ matches)"
    assert "only the first 50 matches" in many.text
    long = await found(tmp_path, pattern="hit", path="long.txt")
    assert len(long.text) < 1_000
    wide = await found(tmp_path, pattern="hit", context=20)
    assert len(wide.text) <= 30_000


@pytest.mark.req("FIL-15")
@pytest.mark.parametrize("path", ["..", "/etc", "link", "link/secret.py", ".git"])
async def test_nothing_outside(root: Path, path: str) -> None:
    result = await found(root, pattern="foo", path=path)
    assert not result.ok
    assert "refused" in result.text


@pytest.mark.req("FIL-14")
async def test_structure(root: Path) -> None:
    result = await found(root, type="ast", lang="python", pattern="print($A)")
    assert rows(result) == [("a.py", 2, "print(foo(1))")]
    block = await found(root, type="ast", lang="python", pattern="if $COND: $BODY")
    assert [row[:2] for row in rows(block)] == [("src/b.py", 2)]
    assert rows(await found(root, type="ast", lang="ts", pattern="foo($X)")) == [("src/c.ts", 1, "foo(2)")]
    assert rows(await found(root, type="ast", lang="python", pattern="nothing($A)")) == []


async def test_structure_needs_a_language_that_exists(root: Path) -> None:
    assert "needs `lang`" in (await found(root, type="ast", pattern="x")).text
    assert "ast-grep refused" in (await found(root, type="ast", lang="klingon", pattern="x")).text


async def test_ripgrep_on_the_path_is_used_and_a_config_cannot_change_it(root: Path, tmp_path: Path) -> None:
    """A stand-in for ``rg`` that answers in ripgrep's JSON and records how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    line = json.dumps(
        {
            "type": "match",
            "data": {
                "path": {"text": str(root / "a.py")},
                "lines": {"text": "print(foo(1))\n"},
                "line_number": 2,
            },
        }
    )
    script = folder / "rg"
    script.write_text(
        f"#!{sys.executable}\nimport sys, json\njson.dump(sys.argv[1:], open({str(folder / 'argv')!r}, 'w'))\nprint({line!r})\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    context = make_context(root, env={"PATH": str(folder)})
    result = await TOOL.run(Args(pattern="-foo", glob="*.py"), context)
    assert rows(result) == [("a.py", 2, "print(foo(1))")]
    argv = json.loads((folder / "argv").read_text())
    assert argv[-4:] == ["--regexp", "-foo", "--", str(root)]
    assert argv[0] == "--no-config"
    assert argv.index("--glob=!.git") > argv.index("--glob=*.py")


async def test_an_engine_that_hangs_is_ended_with_its_children(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "rg"
    script.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {folder}/pid\nwait\n")
    script.chmod(0o755)
    monkeypatch.setattr("opendev.tools.search.TIMEOUT_S", 0.5)
    result = await TOOL.run(Args(pattern="x"), make_context(root, env={"PATH": f"{folder}:/usr/bin:/bin"}))
    assert result.error is not None
    assert result.error.kind.value == "timeout"
    pid = int((folder / "pid").read_text())
    assert await asyncio.to_thread(_is_gone, pid)


def _is_gone(pid: int) -> bool:
    stat_file = Path(f"/proc/{pid}/stat")
    return not stat_file.exists() or stat_file.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_the_worker_without_the_wheel(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_ripgrep", None)
    job = {"root": str(root), "path": str(root), "pattern": "foo", "glob": "*.py", "context": 0, "limit": 51}
    got = {(os.path.relpath(r["path"], root), r["line"]) for r in search_worker.search(job)}
    assert got == {("a.py", 2), ("a.py", 3), ("src/b.py", 1), ("ignored/x.py", 1), ("-odd$(touch m).py", 1)}
    (error,) = search_worker.search({**job, "pattern": "("})
    assert "parse error" in error["error"]
