"""list_files: tree, glob, excludes, caps (FIL-13, FIL-15, TOR-02)."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind
from opendev.core.tool import ToolResult
from opendev.tools.list_files import TOOL, Args
from support.tool_context import make_context


async def listed(root: Path, **args: object) -> ToolResult:
    return await TOOL.run(Args.model_validate(args), make_context(root))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/app/main.py", "src/app/util.py", "src/web/index.ts", "README.md", ".github/ci.yml"):
        path = tmp_path / "w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for junk in ("node_modules/a/b.js", ".git/config", "__pycache__/x.pyc", ".venv/bin/python", ".DS_Store"):
        path = tmp_path / "w" / junk
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "w"


@pytest.mark.req("FIL-13")
async def test_a_tree_without_junk(root: Path) -> None:
    result = await listed(root)
    assert result.text == (
        "./\n  .github/\n    ci.yml\n  README.md\n  src/\n    app/\n      main.py\n      util.py\n    web/\n      index.ts"
    )
    assert result.summary == "✓ Listed directory (9 items)"


@pytest.mark.req("FIL-13")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", {"src/app/main.py", "src/app/util.py"}),
        ("src/**/*.ts", {"src/web/index.ts"}),
        ("./README.md", {"README.md"}),
        ("*.rs", set[str]()),
    ],
)
async def test_a_glob(root: Path, pattern: str, found: set[str]) -> None:
    result = await listed(root, pattern=pattern)
    assert result.data is not None
    assert set(result.data["entries"]) == found


async def test_a_folder_below(root: Path) -> None:
    result = await listed(root, path="src/app")
    assert result.text == "src/app/\n  main.py\n  util.py"


@pytest.mark.req("FIL-13")
async def test_caps(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "deep").mkdir(parents=True)
    for number in range(700):
        (root / "deep" / f"f{number:03}").write_text("")
    (root / "zz").write_text("")
    few = await listed(root)
    many = await listed(root, max_results=5_000)
    assert few.data is not None
    assert many.data is not None
    assert (few.data["items"], many.data["items"]) == (100, 500)
    assert "  zz\n" in few.text  # a deep folder does not hide its neighbours
    assert "only the first 100 entries" in few.text
    assert few.summary == "✓ Listed directory (100+ items)"


@pytest.mark.req("FIL-15")
async def test_links_are_shown_and_not_followed(root: Path) -> None:
    (root / "out").symlink_to("/etc")
    (root / "loop").symlink_to(root)
    result = await listed(root)
    assert "  out@" in result.text
    assert "passwd" not in result.text
    outside = await listed(root, path="out")
    assert outside.error is not None
    assert outside.error.kind is ErrorKind.SCOPE
    assert (await listed(root, path="../")).ok is False


async def test_what_is_no_folder(root: Path) -> None:
    assert "is a file" in (await listed(root, path="README.md")).text
    assert "There is no folder" in (await listed(root, path="nope")).text


async def test_names_that_are_no_utf8(root: Path) -> None:
    (root / "caf\udce9").write_text("")
    result = await listed(root)
    result.text.encode()
    assert "caf\ufffd" in result.text
