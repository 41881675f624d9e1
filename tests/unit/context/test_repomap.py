"""The map of a repository: outlines, ranking, bounds, and a cache by content (RET-08, RET-09)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.context import repomap
from opendev.context.outline import MAX_DEFINITIONS, outline
from opendev.context.repomap import MIN_FILES, build, load, map_folder, rank, render, source_files

PYTHON = """
import os
class Store(Base, metaclass=M):
    limit = 3
    @property
    def size(self) -> int:
        def local_helper(): ...
        return compute_size(self)
def compute_size(
    store: Store,
) -> int:
    return 1
"""
SOURCES = {
    ".py": (
        PYTHON,
        [
            "class Store(Base, metaclass=M)",
            "def size(self) -> int",
            "def compute_size( store: Store, ) -> int",
        ],
    ),
    ".js": (
        "function alpha(a, b) { return 1 }\nclass Beta extends X { gamma(q) { inner() } }\nconst delta = (x) => x + 1\nlet no = 3\n",
        ["function alpha(a, b)", "class Beta extends X", "gamma(q)", "delta = (x) =>"],
    ),
    ".ts": (
        "export interface Shape { area(): number }\nexport type Id = string\nenum Kind { A }\nexport abstract class Box implements Shape { area(): number { return 1 } }\n",
        [
            "interface Shape",
            "type Id = string;",
            "enum Kind",
            "abstract class Box implements Shape",
            "area(): number",
        ],
    ),
    ".tsx": ("export const App = (p: Props) => { return <div/> }\n", ["App = (p: Props) =>"]),
    ".go": (
        "package p\ntype Server struct {\n n int\n}\nfunc (s *Server) Run(a int) error { return nil }\nfunc New() *Server { return nil }\n",
        ["Server struct", "func (s *Server) Run(a int) error", "func New() *Server"],
    ),
}


def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "core.py").write_text(
        "class Engine:\n    def start_engine(self): ...\ndef rarely_used(): ...\n"
    )
    for n in range(12):
        (root / "src" / f"user_{n}.py").write_text(
            f"from .core import Engine\ndef use_{n}():\n    Engine().start_engine()\n"
        )
    return root


@pytest.mark.req("RET-08")
@pytest.mark.parametrize("suffix", sorted(SOURCES))
def test_an_outline_has_signatures_and_no_bodies(suffix: str) -> None:
    source, signatures = SOURCES[suffix]
    found = outline(suffix, source.encode())
    assert [d.signature.rstrip(";") for d in found.definitions] == [s.rstrip(";") for s in signatures]
    assert "local_helper" not in [d.name for d in found.definitions]


def test_an_outline_of_broken_or_endless_source_is_bounded() -> None:
    assert outline(".py", b"def ok():\n  pass\nclass (((\n\xff\xfe").definitions[0].name == "ok"
    assert outline(".go", b"").definitions == ()
    many = "".join(f"def f_{n}(): pass\n" for n in range(MAX_DEFINITIONS * 2))
    assert len(outline(".py", many.encode()).definitions) == MAX_DEFINITIONS


@pytest.mark.req("RET-08", "RET-09")
def test_the_most_referenced_come_first_and_the_map_keeps_its_bound(tmp_path: Path) -> None:
    root, home = project(tmp_path), tmp_path / "home"
    made = build(root, home)
    assert made == load(home, root)
    assert made.total == 13
    text = render(made, "Do something.", 300, root)
    assert text.splitlines()[:4] == [
        "13 source files; the most referenced, `line: signature`. Bodies are not shown.",
        "src/core.py",
        "  1: class Engine",
        "    2: def start_engine(self)",
    ]
    assert "user_3.py" not in text  # nothing refers to it: below the threshold
    named = render(made, "Why does use_3 fail?", 300, root)
    assert named.splitlines()[1:3] == ["src/user_3.py", "  2: def use_3()"]
    for tokens in (0, 20, 40, 300, 5_000):
        assert len(render(made, "", tokens, root)) <= tokens * 4


def test_small_projects_and_lost_files_are_left_out(tmp_path: Path) -> None:
    root, home = project(tmp_path), tmp_path / "home"
    made = build(root, home)
    (root / "src" / "core.py").unlink()
    assert "core.py" not in render(made, "", 1_000, root)
    for n in range(12):
        (root / "src" / f"user_{n}.py").unlink()
    (root / "one.py").write_text("class Alone: ...")
    assert build(root, home).total == 1 < MIN_FILES
    assert render(build(root, home), "Alone", 1_000, root) == ""
    assert load(home, tmp_path) is None
    (map_folder(home, root) / "map.json").write_text("{broken")
    assert load(home, root) is None


@pytest.mark.req("RET-08")
def test_only_new_content_is_parsed_and_nothing_is_kept_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = project(tmp_path), tmp_path / "home"
    before = sorted(root.rglob("*"))
    parsed: list[bytes] = []

    def spy(suffix: str, source: bytes) -> object:
        parsed.append(source)
        return outline(suffix, source)

    monkeypatch.setattr(repomap, "outline", spy)
    build(root, home)
    assert len(parsed) == 13
    parsed.clear()
    (root / "src" / "core.py").write_text("class Motor: ...\n")
    (root / "src" / "user_1.py").rename(root / "src" / "moved.py")
    made = build(root, home)
    assert parsed == [b"class Motor: ...\n"]
    assert "src/moved.py" in {file.path for file in made.files}
    assert len(sorted(root.rglob("*"))) == len(before)
    assert map_folder(home, root).is_relative_to(home)


def test_a_build_out_of_time_keeps_what_it_has(tmp_path: Path) -> None:
    root, home = project(tmp_path), tmp_path / "home"
    assert build(root, home, budget_s=-1).total == 0
    assert build(root, home).total == 13


def test_ignored_hidden_linked_and_huge_files_are_no_part(tmp_path: Path) -> None:
    root = tmp_path / "p"
    for name in ("a.py", "node_modules/x.js", ".hid/y.py", "out/z.go", "s.min.js", "n.txt", "d/k.ts"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "big.py").write_text("x" * 500_000)
    (root / "link.py").symlink_to(root / "a.py")
    os.mkfifo(root / "pipe.py")
    (root / ".gitignore").write_text("/out/\n")
    assert list(source_files(root)) == ["a.py", "d/k.ts"]


def test_common_names_tests_and_private_names_count_less() -> None:
    files = {f"m{n}.py": outline(".py", b"def run_all(): ...") for n in range(9)}
    files["lib.py"] = outline(".py", b"def helper_one(): ...\ndef _hidden(): ...")
    files["tests/test_lib.py"] = outline(".py", b"def check_it(): helper_one(); _hidden(); run_all()")
    files["tests/test_two.py"] = outline(".py", b"check_it(); helper_one()")
    found = rank(files)
    assert found.files[0].path == "lib.py"
    assert [r.score for r in found.files[0].definitions] == [2.0, 0.1]
    assert {file.score for file in found.files if file.path.startswith("m")} == {0.0}
    assert next(file.score for file in found.files if file.path.startswith("tests/")) == pytest.approx(0.2)


@pytest.mark.req("RET-08")
@pytest.mark.slow
def test_it_is_a_program_of_its_own(tmp_path: Path) -> None:
    root, home = project(tmp_path), tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-P", "-m", "opendev.context.repomap", str(root), str(home)]
    assert subprocess.run(command, cwd=home, env={"PATH": "/usr/bin:/bin"}, check=False).returncode == 0
    found = load(home, root)
    assert found is not None
    assert found.total == 13
    assert subprocess.run([*command[:-1], "/proc/nowhere"], cwd=home, check=False).returncode == 1
