"""Confinement of paths: spelled and real, links, git's own files (FIL-15, T01..T11)."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.policy.paths import confine, relative


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("w/agent/sub", "w/agent-victim", "scratch", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside/secret").write_text("s")
    (tmp_path / "w/agent/sub/a.py").write_text("a")
    return tmp_path / "w/agent"


def refused(path: str, root: Path, *, follow: bool = True) -> str:
    with pytest.raises(OpenDevError) as caught:
        confine(path, root, (root.parent.parent / "scratch",), follow=follow)
    assert caught.value.info.kind is ErrorKind.SCOPE
    return caught.value.info.message


@pytest.mark.req("FIL-15")
def test_what_is_inside(root: Path) -> None:
    scratch = root.parent.parent / "scratch"
    assert confine("sub/a.py", root) == root / "sub/a.py"
    assert confine(".", root) == root
    assert confine("sub/../sub/./a.py", root) == root / "sub/a.py"
    assert confine(str(root / "new/deep/x"), root) == root / "new/deep/x"
    assert confine(str(scratch / "x"), root, (scratch,)) == scratch / "x"
    assert confine("%2e%2e/x", root) == root / "%2e%2e/x"  # never percent-decoded
    assert confine("...", root) == root / "..."


@pytest.mark.req("FIL-15")
@pytest.mark.parametrize(
    "path",
    [
        "{root}-victim/s.txt",
        "{root}/../agent-victim/s.txt",
        "../agent-victim/s.txt",
        "{root}/sub/../../x",
        "{root}//../x",
        "./../x",
        "..",
        "/",
        "/etc/passwd",
        "~/x",
        "~root/x",
        "",
        "a\0b",
        "/proc/self/cwd/sub/a.py",
        "/proc/self/root/etc/passwd",
        "../../scratch-not/x",
    ],
)
def test_what_is_outside(root: Path, path: str) -> None:
    assert refused(path.format(root=root), root)


@pytest.mark.req("FIL-15")
def test_links_are_judged_by_where_they_lead(root: Path) -> None:
    outside = root.parent.parent / "outside"
    (root / "escape").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "absent")
    (root / "inside").symlink_to("sub")
    (root / "sub/up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    for path in (
        "escape",
        "escape/secret",
        "escape/new/file",
        "dangling",
        "inside/../../x",
        "sub/up/../x",
        "loop/x",
    ):
        refused(path, root)
    assert confine("inside/a.py", root) == root / "sub/a.py"
    assert confine("sub/up/sub/a.py", root) == root / "sub/a.py"


def test_a_link_itself_can_be_named_for_deletion(root: Path) -> None:
    (root / "escape").symlink_to(root.parent.parent / "outside")
    assert confine("escape", root, follow=False) == root / "escape"
    refused("escape/secret", root, follow=False)
    refused("../x", root, follow=False)
    refused(".git", root, follow=False)


def test_a_root_that_is_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    assert confine("sub/a.py", alias) == root / "sub/a.py"
    assert relative(root / "sub/a.py", alias) == "sub/a.py"


@pytest.mark.req("SAF-04")
@pytest.mark.parametrize(
    "path",
    [".git", ".git/config", ".GIT/hooks/pre-commit", ".Git/x", "sub/.git", "vendor/lib/.git/config", ".git./x", ".git /x",
     "git~1/config", ".git::$INDEX_ALLOCATION/x", ".g\u200cit/config"],
)  # fmt: skip
def test_git_is_off_limits_even_when_absent(root: Path, path: str) -> None:
    assert "git's own files" in refused(path, root)


def test_git_is_off_limits_through_a_link_and_as_a_file(root: Path) -> None:
    (root / ".git").write_text("gitdir: ../evil\n")
    (root / "alias").symlink_to(".git")
    refused("alias", root)
    refused(".git", root)


@pytest.mark.parametrize(
    "path", [".gitignore", ".GITIGNORE", ".github/x.yml", ".gitattributes", "agit/x", "x.git/y"]
)
def test_names_that_only_look_like_git(root: Path, path: str) -> None:
    assert confine(path, root) == root / path


def test_relative(root: Path) -> None:
    assert relative(root / "sub/a.py", root) == "sub/a.py"
    assert relative(root, root) == "."
    assert relative(Path("/scratch/x"), root) == "/scratch/x"
