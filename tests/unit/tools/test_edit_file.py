"""edit_file on real files: encodings, ends, modes, links, staleness, and failed edits that leave no trace."""

import os
from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.core.tool import Limits, ToolContext, ToolResult
from opendev.tools import read_file
from opendev.tools.edit_file import TOOL, Args
from pydantic import ValidationError
from support.tool_context import make_context


async def edit(ctx: ToolContext, name: str, old: str, new: str, *, replace_all: bool = False) -> ToolResult:
    return await TOOL.run(
        Args(file_path=name, old_content=old, new_content=new, replace_all=replace_all), ctx
    )


def facts(path: Path) -> tuple[Any, ...]:
    status = path.stat()
    return path.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode


@pytest.mark.req("FIL-11")
async def test_the_result_has_diff_pass_and_path(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\nb = 2\n")
    result = await edit(make_context(tmp_path), "./a.py", "b = 2", "b = 3")
    assert result.ok
    assert result.changed == ("a.py",)
    assert result.data == {
        "path": "a.py",
        "pass": "exact",
        "replacements": 1,
        "lines": [2],
        "matched": "b = 2",
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n",
    }
    assert "(pass: exact)" in result.text


@pytest.mark.req("FIL-07")
async def test_an_approximate_pass_is_said_and_shown(tmp_path: Path) -> None:
    (tmp_path / "m.go").write_text("func f() {\n\tif ok {\n\t\treturn 1\n\t}\n}\n")
    old = "    if ok {\n        return 1\n    }"
    result = await edit(make_context(tmp_path), "m.go", old, old.replace("1", "2"))
    assert (tmp_path / "m.go").read_text() == "func f() {\n\tif ok {\n\t\treturn 2\n\t}\n}\n"
    assert "did not match exactly" in result.text
    assert "+\t\treturn 2" in result.text


async def test_a_diff_far_down_has_true_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1, 5_001)))
    result = await edit(make_context(tmp_path), "a", "\n4000\n", "\nx\n")
    assert result.data is not None
    assert "@@ -3997,7 +3997,7 @@" in result.data["diff"]


@pytest.mark.parametrize(
    ("data", "old", "new", "result"),
    [
        (b"const x=1;\n// caf\xe9 note\n", "const x=1;", "const x=2;", b"const x=2;\n// caf\xe9 note\n"),
        (b"// \x83\\\x83N\nint a=1;\n", "int a=1;", "int a=2;", b"// \x83\\\x83N\nint a=2;\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "a\nc\nd", b"\xef\xbb\xbfa\r\nc\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffa", "\ufeffb", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0\n\0", "a", "\u30bd", b"\xff\xfe\xbd\x30\n\0"),
        (b"try\n    1\n", "    1\n", "    2\n", b"try\n    2\n"),
        ("caf\u00e9 1".encode(), "caf\u00e9 1", "caf\u00e9 2", "caf\u00e9 2".encode()),
    ],
)
async def test_bytes_outside_of_the_edit_stay(
    tmp_path: Path, data: bytes, old: str, new: str, result: bytes
) -> None:
    (tmp_path / "f").write_bytes(data)
    assert (await edit(make_context(tmp_path), "f", old, new)).ok
    assert (tmp_path / "f").read_bytes() == result


@pytest.mark.parametrize(
    ("data", "old", "new", "why"),
    [
        (b"x=1 // caf\xe9\n", "x=1", "x='\u00e9'", "encoding is unknown"),
        (b"// \x83\\\n", "\\\n", "/\n", "double-byte"),
        (b"a\0b", "a", "b", "binary"),
        (b"a\n", "a", "\udc80", "cannot encode"),
        (b"gem 'rails'\n", "gem 'sinatra'", "gem 'hanami'", "gem 'rails'"),
        (b"x\nx\n", "x", "y", "matched 2 times"),
        (b"important\n", "", "x\n", "has content"),
        (b"same\n", "same", "same", "the same"),
    ],
)
async def test_a_failed_edit_never_touches_the_file(
    tmp_path: Path, data: bytes, old: str, new: str, why: str
) -> None:
    (tmp_path / "f").write_bytes(data)
    before = facts(tmp_path / "f")
    result = await edit(make_context(tmp_path), "f", old, new)
    assert not result.ok
    assert why in result.text
    assert facts(tmp_path / "f") == before
    assert result.changed == ()
    result.text.encode()


async def test_three_edits_in_a_row_do_not_move_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("try:\n    return 1\nexcept E:\n    pass\n")
    ctx = make_context(tmp_path)
    for n in (1, 2, 3):
        assert (await edit(ctx, "a.py", f"    return {n}\n", f"    return {n + 1}\n")).ok
    assert (tmp_path / "a.py").read_text() == "try:\n    return 4\nexcept E:\n    pass\n"


async def test_a_line_added_after_an_anchor_goes_there(tmp_path: Path) -> None:
    (tmp_path / "c.cfg").write_text("[a]\nx=1\n[b]\ny=1\n")
    ctx = make_context(tmp_path)
    assert (await edit(ctx, "c.cfg", "[a]", "[a]\nz=9")).ok
    assert (tmp_path / "c.cfg").read_text() == "[a]\nz=9\nx=1\n[b]\ny=1\n"
    assert not (await edit(ctx, "c.cfg", "[c]", "[c]\nz=9")).ok
    assert not (await edit(ctx, "c.cfg", "=1", "=1\nz=9")).ok


async def test_replace_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\n")
    result = await edit(make_context(tmp_path), "a", "x", "z", replace_all=True)
    assert (tmp_path / "a").read_text() == "z\ny\nz\n"
    assert "2 replacements, lines 1, 3" in result.text


async def test_empty_old_content_creates_and_fills_but_never_replaces(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    assert (await edit(ctx, "new", "", "x\n")).changed == ("new",)
    (tmp_path / "empty").touch()
    assert (await edit(ctx, "empty", "", "y\n")).ok
    assert [(tmp_path / name).read_text() for name in ("new", "empty")] == ["x\n", "y\n"]


def test_new_content_may_be_empty_but_not_missing() -> None:
    assert Args(file_path="a", old_content="b", new_content="").new_content == ""
    with pytest.raises(ValidationError, match="new_content"):
        Args.model_validate({"file_path": "a", "old_content": "b"})


@pytest.mark.req("C-22")
def test_other_spellings_are_known() -> None:
    assert TOOL.aliases["path"] == "file_path"
    assert TOOL.aliases["old_string"] == "old_content"
    assert TOOL.aliases["new_string"] == "new_content"


async def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("hello\nworld\n")
    (tmp_path / "link.md").symlink_to("real.md")
    (tmp_path / "chain.md").symlink_to("link.md")
    result = await edit(make_context(tmp_path), "chain.md", "world", "there")
    assert result.changed == ("real.md",)
    assert (tmp_path / "real.md").read_text() == "hello\nthere\n"
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "chain.md").is_symlink()
    (tmp_path / "loop").symlink_to("loop")
    assert not (await edit(make_context(tmp_path), "loop", "a", "b")).ok


async def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("a\n")
    (root / "link").symlink_to("../secret")
    result = await edit(make_context(root), "link", "a", "b")
    assert result.error is not None
    assert result.error.kind is ErrorKind.SCOPE
    assert (tmp_path / "secret").read_text() == "a\n"


async def test_mode_stays_read_only_is_refused_and_hard_links_are_told(tmp_path: Path) -> None:
    for name, mode in (("run", 0o755), ("locked", 0o444)):
        (tmp_path / name).write_text("a\n")
        (tmp_path / name).chmod(mode)
    ctx = make_context(tmp_path)
    assert (await edit(ctx, "run", "a", "b")).ok
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o755
    before = facts(tmp_path / "locked")
    assert "permission" in (await edit(ctx, "locked", "a", "b")).text
    assert facts(tmp_path / "locked") == before
    (tmp_path / "other").hardlink_to(tmp_path / "run")
    assert "hard links" in (await edit(ctx, "run", "b", "c")).text


@pytest.mark.req("FIL-09")
async def test_a_file_changed_by_someone_else_is_stale(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_text("a\nb\n")
    ctx = make_context(tmp_path)
    await read_file.TOOL.run(read_file.Args(file_path="f.txt"), ctx)
    later = file.stat().st_mtime + 5
    os.utime(file, (later, later))
    assert (await edit(ctx, "f.txt", "a", "c")).ok  # E33: touched, not changed
    assert (await edit(ctx, "f.txt", "c", "d")).ok  # T-04: its own edit is no reason
    stamp = file.stat()
    file.write_text("d\nB\n")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    result = await edit(ctx, "f.txt", "d", "e")
    assert result.error is not None
    assert result.error.kind is ErrorKind.CONFLICT
    assert "Read it again" in result.text
    assert file.read_text() == "d\nB\n"
    await read_file.TOOL.run(read_file.Args(file_path="f.txt"), ctx)
    assert (await edit(ctx, "f.txt", "d", "e")).ok


@pytest.mark.req("SWM-05")
async def test_out_of_scope_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    before = facts(tmp_path / "a")
    result = await edit(make_context(tmp_path, scope=Scope(may=("src/**",))), "a", "a", "b")
    assert result.error is not None
    assert result.error.kind is ErrorKind.SCOPE
    assert "a is outside" in result.error.message
    assert facts(tmp_path / "a") == before


async def test_the_scratch_folder_is_writable_and_not_a_change_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    ctx = make_context(root, scope=Scope(may=("src/**",)))
    ctx.scratch.mkdir()
    (ctx.scratch / "n").write_text("a\n")
    result = await edit(ctx, str(ctx.scratch / "n"), "a", "b")
    assert result.ok
    assert result.changed == ()
    with pytest.raises(OpenDevError):
        ctx.seen.assert_fresh(ctx.scratch / "n", b"other")


@pytest.mark.req("C-46")
async def test_similarity_locates_by_default_and_applies_on_request_but_never_with_replace_all(
    tmp_path: Path,
) -> None:
    text = "def f(a):\n    x = a + 1\n    return x\n"
    (tmp_path / "f.py").write_text(text)
    old, new = text.replace("+ 1", "+ 2"), "def f(a):\n    return a\n"
    apply = make_context(tmp_path, limits=Limits(edit_similarity="apply"))
    assert not (await edit(make_context(tmp_path), "f.py", old, new)).ok
    assert not (await edit(apply, "f.py", old, new, replace_all=True)).ok
    assert (tmp_path / "f.py").read_text() == text
    assert (await edit(apply, "f.py", old, new)).ok
    assert (tmp_path / "f.py").read_text() == new


@pytest.mark.parametrize(
    "line",
    [
        "// ... existing code ...",
        "    # ... rest of the function unchanged",
        "/* ... rest of code ... */",
        "# ... (rest of the file remains the same)",
        "(rest of methods ...)",
        "... other methods unchanged ...",
        "// Rest of the class\u2026",
    ],
)
async def test_a_line_that_stands_for_code_is_never_written_in_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text("def f():\n    a()\n    b()\n")
    before = facts(tmp_path / "a.py")
    ctx = make_context(tmp_path)
    result = await edit(ctx, "a.py", "    a()\n    b()", f"    a(1)\n{line}")
    assert not result.ok
    assert "leaves code out" in result.text
    assert facts(tmp_path / "a.py") == before
    (tmp_path / "a.md").write_text("a()\n")
    assert (await edit(ctx, "a.md", "a()", line)).ok  # prose may speak of it
    (tmp_path / "b.py").write_text(f"{line}\nx = 1\n")
    assert (await edit(ctx, "b.py", f"{line}\nx = 1", f"{line}\nx = 2")).ok  # it stood there


@pytest.mark.parametrize(
    "line",
    [
        "    ...",
        "# ...",
        "x[..., 0] = 1",
        "print('loading existing code ...')",
        "  ...existingState,",
        "const {a, ...rest} = props",
        "# existing code relies on this",
        "# wait for the existing lock ...",
        "func(...args)",
    ],
)
async def test_other_lines_with_dots_are_written(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text("a\n")
    assert (await edit(make_context(tmp_path), "a.py", "a", line)).ok
