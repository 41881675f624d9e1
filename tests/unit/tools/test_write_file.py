"""write_file on real files."""

import os
import stat
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind
from opendev.core.scope import Scope
from opendev.core.tool import ToolResult
from opendev.tools.write_file import TOOL, Args
from support.tool_context import make_context


async def write(
    root: Path, name: str, content: str, *, create_dirs: bool = False, scope: Scope | None = None
) -> ToolResult:
    ctx = make_context(root, scope=scope or Scope())
    return await TOOL.run(Args(file_path=name, content=content, create_dirs=create_dirs), ctx)


def tree_names(root: Path) -> list[str]:
    return sorted(item.relative_to(root).as_posix() for item in root.rglob("*"))


@pytest.mark.req("FIL-05")
async def test_a_new_file_has_exactly_the_content(tmp_path: Path) -> None:
    content = 'print("a\\nb")\r\n$& \\1 caf\u00e9'
    result = await write(tmp_path, "a.py", content)
    assert (tmp_path / "a.py").read_bytes() == content.encode()
    assert result.changed == ("a.py",)
    assert result.data is not None
    assert result.data["bytes"] == len(content.encode())
    assert "+++ b/a.py" in result.data["diff"]
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o666 & ~mask


@pytest.mark.req("C-29")
async def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    result = await write(tmp_path, "a", "new")
    assert not result.ok
    assert "edit_file" in result.text
    assert (tmp_path / "a").read_text() == "old"


async def test_missing_folders_are_made_on_request_only(tmp_path: Path) -> None:
    refused = await write(tmp_path, "x/y/a", "new")
    assert not refused.ok
    assert "create_dirs=true" in refused.text
    assert not (tmp_path / "x").exists()
    assert (await write(tmp_path, "x/y/a", "new", create_dirs=True)).changed == ("x/y/a",)
    assert not (await write(tmp_path, "x/y/a/b", "new", create_dirs=True)).ok


async def test_a_refused_write_leaves_no_folder(tmp_path: Path) -> None:
    name = "x/y/" + "n" * 300
    assert not (await write(tmp_path, name, "new", create_dirs=True)).ok
    assert tree_names(tmp_path) == []


@pytest.mark.parametrize("name", ["../out", "/etc/opendev", "docs/a", ".git/hooks/x", "link/a"])
async def test_outside_of_root_or_scope_nothing_is_written(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    result = await write(root, name, "x", create_dirs=True, scope=Scope(may=("src/**",)))
    assert result.error is not None
    assert result.error.kind is ErrorKind.SCOPE
    assert name in result.error.message
    assert tree_names(root) == ["link"]
