"""replace_text, rewrite_code, delete_file, move_file: all or nothing, in scope, and never a silent nothing."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import ErrorKind
from opendev.core.scope import Scope
from opendev.core.tool import Tool, ToolContext, ToolResult
from opendev.tools import delete_file, move_file, replace_text, rewrite_code
from support.tool_context import make_context


def tree(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def fill(root: Path, files: dict[str, str]) -> ToolContext:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return make_context(root)


def with_scope(ctx: ToolContext, *may: str) -> ToolContext:
    return make_context(ctx.root, scope=Scope(may=may))


async def replace(ctx: ToolContext, pattern: str, by: str, glob: str, *, regex: bool = False) -> ToolResult:
    return await replace_text.TOOL.run(
        replace_text.Args(pattern=pattern, replacement=by, glob=glob, regex=regex), ctx
    )


async def rewrite(
    ctx: ToolContext, pattern: str, by: str, glob: str = "", lang: str = "python"
) -> ToolResult:
    return await rewrite_code.TOOL.run(
        rewrite_code.Args(lang=lang, pattern=pattern, rewrite=by, glob=glob), ctx
    )


async def delete(ctx: ToolContext, name: str) -> ToolResult:
    return await delete_file.TOOL.run(delete_file.Args(file_path=name), ctx)


async def move(ctx: ToolContext, source: str, destination: str) -> ToolResult:
    return await move_file.TOOL.run(move_file.Args(source=source, destination=destination), ctx)


async def test_replace_is_literal_and_keeps_line_ends(tmp_path: Path) -> None:
    ctx = fill(
        tmp_path, {"src/a.py": "x.y\r\nxay\r\n", "src/b/c.py": "x.y x.y", "d.py": "x.y\n", "src/e.txt": "x.y"}
    )
    result = await replace(ctx, "x.y", "$& \\1\n", "src/**/*.py")
    assert result.ok
    assert result.changed == ("src/a.py", "src/b/c.py")
    assert result.data is not None
    assert result.data["files"] == {"src/a.py": 1, "src/b/c.py": 2}
    assert tree(tmp_path) == {
        "src/a.py": b"$& \\1\r\n\r\nxay\r\n",
        "src/b/c.py": b"$& \\1\n $& \\1\n",
        "d.py": b"x.y\n",
        "src/e.txt": b"x.y",
    }


async def test_replace_by_regex_expands_groups_line_by_line(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a.txt": "get_a()\r\nget_b()\r\nset_a()\r\n"})
    assert (await replace(ctx, r"^get_(?P<n>\w)\(\)$", r"\1.get(\g<n>)", "*.txt", regex=True)).ok
    assert tree(tmp_path) == {"a.txt": b"a.get(a)\r\nb.get(b)\r\nset_a()\r\n"}


@pytest.mark.parametrize(
    ("pattern", "by", "glob", "regex", "why"),
    [
        ("nope", "x", "**/*.py", False, "Nothing was replaced"),
        ("a", "a", "**/*.py", False, "its replacement is the same"),
        ("a", "b", "*.rs", False, "`**/*.rs`"),
        ("(", "b", "**/*.py", True, "regular expression"),
        ("a", "\\2", "**/*.py", True, "regular expression"),
    ],
)
async def test_a_replacement_of_nothing_fails(
    tmp_path: Path, pattern: str, by: str, glob: str, regex: bool, why: str
) -> None:
    ctx = fill(tmp_path, {"a.py": "a\n"})
    result = await replace(ctx, pattern, by, glob, regex=regex)
    assert not result.ok
    assert why in result.text
    assert tree(tmp_path) == {"a.py": b"a\n"}


@pytest.mark.req("SWM-05")
async def test_one_file_out_of_scope_or_read_only_fails_the_whole_replacement(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"src/a.py": "old\n", "z/b.py": "old\n", "z/c.py": "other\n"})
    before = tree(tmp_path)
    result = await replace(with_scope(ctx, "src/**"), "old", "new", "**/*.py")
    assert result.error is not None
    assert result.error.kind is ErrorKind.SCOPE
    assert "z/b.py" in result.text
    (tmp_path / "z/b.py").chmod(0o444)
    assert "z/b.py is read-only" in (await replace(ctx, "old", "new", "**/*.py")).text
    assert tree(tmp_path) == before
    assert (await replace(with_scope(ctx, "src/**"), "old", "new", "src")).ok


async def test_binary_files_links_and_junk_are_left_alone(tmp_path: Path) -> None:
    ctx = fill(
        tmp_path, {"a.py": "old", "node_modules/a.py": "old", ".git/a.py": "old", "pkg/.venv/a.py": "old"}
    )
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "bin.py").write_bytes(b"old\0")
    (tmp_path / "latin.py").write_bytes(b"old \xe9")
    result = await replace(ctx, "old", "new", "**/*.py")
    assert result.changed == ("a.py",)
    assert "Skipped (binary, too large or not UTF-8): bin.py, latin.py." in result.text
    assert (tmp_path / "link.py").is_symlink()
    assert tree(tmp_path)["node_modules/a.py"] == b"old"


async def test_a_glob_never_reaches_files_of_secrets_and_settings(tmp_path: Path) -> None:
    names = (".env", "keys/.ENV.local", ".opendev/settings.json", ".mcp.json", "a.py")
    fill(tmp_path, dict.fromkeys(names, "old = 1"))
    ctx = make_context(tmp_path, deny_read=(".env*",))
    assert (await replace(ctx, "old", "new", "**")).changed == ("a.py",)
    assert not (await replace(ctx, "old", "new", ".env")).ok


async def test_rewrite_works_on_structure_and_keeps_bytes(tmp_path: Path) -> None:
    ctx = fill(
        tmp_path,
        {
            "src/a.py": "\ufeff\u00e9 = foo(1)\r\n# foo(2)\r\nx = foo(foo(3))  \r\n",
            "src/b.js": "foo(1)\n",
            "c.py": "foo(9)\n",
            ".hidden/d.py": "foo(4)\n",
        },
    )
    result = await rewrite(ctx, "foo($A)", "bar($A)", "src")
    assert result.ok
    assert result.changed == ("src/a.py",)
    assert tree(tmp_path)["src/a.py"] == "\ufeff\u00e9 = bar(1)\r\n# foo(2)\r\nx = bar(bar(3))  \r\n".encode()
    everywhere = await rewrite(ctx, "foo($A)", "bar($A)")
    assert everywhere.changed == (".hidden/d.py", "c.py")


async def test_a_rewrite_that_matches_itself_is_applied_once(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a.py": "foo(foo(1))\n"})
    result = await rewrite(ctx, "foo($A)", "log(foo($A))")
    assert tree(tmp_path) == {"a.py": b"log(foo(foo(1)))\n"}
    assert "left as they are: a.py (1)" in result.text


@pytest.mark.parametrize(
    ("pattern", "lang", "why"),
    [("nope($A)", "python", "Nothing was rewritten"), ("foo($A)", "klingon", "klingon")],
)
async def test_a_rewrite_of_nothing_fails(tmp_path: Path, pattern: str, lang: str, why: str) -> None:
    ctx = fill(tmp_path, {"a.py": "foo(1)\n"})
    result = await rewrite(ctx, pattern, "x", lang=lang)
    assert not result.ok
    assert why in result.text


async def test_a_rewrite_out_of_scope_changes_no_file(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a.py": "foo(1)\n", "b.py": "foo(1)\n"})
    result = await rewrite(with_scope(ctx, "a.py"), "foo($A)", "bar($A)")
    assert result.error is not None
    assert result.error.kind is ErrorKind.SCOPE
    assert "b.py" in result.text
    assert tree(tmp_path) == {"a.py": b"foo(1)\n", "b.py": b"foo(1)\n"}


async def test_delete_removes_the_file_or_the_link_itself(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a": "1", "b": "2"})
    (tmp_path / "link").symlink_to("b")
    assert (await delete(ctx, "a")).changed == ("a",)
    assert (await delete(ctx, "link")).changed == ("link",)
    assert tree(tmp_path) == {"b": b"2"}


async def test_delete_refuses_what_it_should_not_touch(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"dir/a": "1", "locked": "2", "seen": "3", "out": "4"})
    (tmp_path / "locked").chmod(0o444)
    ctx.seen.record(ctx.root / "seen", b"earlier")
    before = tree(tmp_path)
    for name, why in (
        ("dir", "not a file"),
        ("locked", "read-only"),
        ("seen", "changed since"),
        ("none", "not exist"),
    ):
        assert why in (await delete(ctx, name)).text
    for path in ("../x", ".git/config"):
        assert not (await delete(ctx, path)).ok
    assert "out is outside" in (await delete(with_scope(ctx, "dir/**"), "out")).text
    assert tree(tmp_path) == before


async def test_move_keeps_content_mode_and_links(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a": "1"})
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "link").symlink_to("a")
    assert (await move(ctx, "a", "x/y/b")).changed == ("a", "x/y/b")
    assert (tmp_path / "x/y/b").stat().st_mode & 0o777 == 0o755
    assert (await move(ctx, "link", "link2")).ok
    assert (tmp_path / "link2").is_symlink()
    assert tree(tmp_path) == {"x/y/b": b"1"}


async def test_move_refuses_existing_targets_folders_and_foreign_ends(tmp_path: Path) -> None:
    ctx = fill(tmp_path, {"a": "1", "b": "2", "dir/c": "3"})
    (tmp_path / "dangling").symlink_to("nowhere")
    before = tree(tmp_path)
    for source, destination in (
        ("a", "b"),
        ("a", "dangling"),
        ("dir", "d2"),
        ("none", "n"),
        ("a", "../a"),
        ("a", "b/c"),
    ):
        assert not (await move(ctx, source, destination)).ok
    assert "dangling exists already" in (await move(ctx, "a", "dangling")).text
    narrow = with_scope(ctx, "dir/**")
    for source, destination, named in (("a", "dir/a", "a is outside"), ("dir/c", "c", "c is outside")):
        assert named in (await move(narrow, source, destination)).text
    assert tree(tmp_path) == before
    assert not (tmp_path / "d2").exists()


def test_every_recipe_tool_declares_that_it_writes() -> None:
    tools: tuple[Tool[Any], ...] = (replace_text.TOOL, rewrite_code.TOOL, delete_file.TOOL, move_file.TOOL)
    assert not any(tool.read_only for tool in tools)
