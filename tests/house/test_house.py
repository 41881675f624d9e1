"""The house rules as tests: packages, charters, sizes, doors, options that something reads."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from opendev.configs.schema import leaf_keys

ROOT = Path(__file__).resolve().parents[2]
NOT_PACKAGES = {"tests", "scripts", "bench", "docs", "build", "dist"}
DOORS = {
    "ray": {"actors/ray_runtime.py"},
    "litellm": {"llm/litellm_client.py"},
    "openai": {"llm/openai_direct.py", "llm/litellm_client.py"},
    "git": {"worktrees/git.py"},
    "mcp": {"tools/mcp/client.py", "tools/mcp/oauth.py"},
    "playwright": {"tools/web/browser.py"},
    "ddgs": {"tools/web/search_engine.py"},
    "httpx": {"tools/web/plain.py", "llm/litellm_client.py"},
}
ROOM_DOORS = {"rich": "ui", "textual": "ui", "fastapi": "ui", "typer": "cli"}


def sources() -> list[Path]:
    """Every Python file of the package, without tests, scripts and benchmarks."""
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if (parts := path.relative_to(ROOT).parts)
        and not parts[0].startswith(".")
        and parts[0] not in NOT_PACKAGES
        and "__pycache__" not in parts
    ]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.req("ACT-01")
def test_the_package_list_equals_the_folders() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for path in sources()}
    assert sorted(listed) == sorted(".".join(("opendev", *folder.parts)) for folder in folders)
    assert {"agents", "actors", "tools", "templates", "worktrees", "configs"} <= {
        folder.as_posix() for folder in folders
    }


def test_every_file_begins_with_its_charter() -> None:
    bare = [
        name(path) for path in sources() if not (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
    ]
    assert bare == []


def test_no_room_is_still_to_be_written() -> None:
    assert [name(path) for path in sources() if "To be written" in path.read_text()] == []


def test_every_room_lists_its_files() -> None:
    silent: list[str] = []
    for path in sources():
        if path.name != "__init__.py" or path.parent == ROOT:
            continue
        text = path.read_text()
        silent += [
            f"{name(path)} does not name {other.stem}"
            for other in path.parent.glob("*.py")
            if other.name != "__init__.py"
            and path.parent.name not in ("tools",)
            and not re.search(rf"\b{other.stem}\b", text)
        ]
    assert silent == []


def test_files_and_functions_stay_small() -> None:
    large: list[str] = []
    for path in sources():
        text = path.read_text()
        if text.count("\n") > 400:
            large.append(f"{name(path)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and (node.end_lineno or 0) - node.lineno >= 60
            ):
                large.append(f"{name(path)}: {node.name} is {(node.end_lineno or 0) - node.lineno + 1} lines")
    assert large == []


def test_doors_have_one_file_each() -> None:
    strays: list[str] = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for top in {found.split(".")[0] for found in names}:
                if top in DOORS and name(path) not in DOORS[top]:
                    strays.append(f"{name(path)} imports {top}")
                if top in ROOM_DOORS and path.relative_to(ROOT).parts[0] != ROOM_DOORS[top]:
                    strays.append(f"{name(path)} imports {top}")
    assert strays == []


@pytest.mark.req("CFG-01", "ARC-08")
def test_every_setting_is_read_by_real_code() -> None:
    text = "\n".join(path.read_text() for path in sources() if path.relative_to(ROOT).parts[0] != "configs")
    config_text = text + (ROOT / "configs/schema.py").read_text().split("class AppConfig")[1]
    dead = [key for key in leaf_keys() if not re.search(rf"\.{key.rsplit('.', 1)[-1]}\b", config_text)]
    # roles, providers and tiers are read as mappings, by AppConfig.models and AppConfig.tier_models; hooks by their event's name, by Hooks.of
    assert [key for key in dead if not key.startswith(("roles.", "providers.", "tiers.", "hooks."))] == []


def test_every_command_line_flag_is_read() -> None:
    dead: list[str] = []
    for path in sorted((ROOT / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            used = {
                inner.id
                for statement in node.body
                for inner in ast.walk(statement)
                if isinstance(inner, ast.Name)
            }
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            dead += [
                f"{path.name}: {node.name}({argument.arg})"
                for argument in arguments
                if argument.arg not in used
                and not argument.arg.startswith("_")
                and argument.arg not in ("self", "cls")
            ]
    assert dead == []


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile(r"(pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)\.(org|com)")
    found: list[str] = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if (
            not path.is_file()
            or path.suffix in (".png", ".pyc")
            or parts[0] in (".git", ".venv", ".cache", ".hypothesis")
        ):
            continue
        if hosts.search(path.read_text("utf-8", errors="ignore")):
            found.append(name(path))
    assert found == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]
    text = (ROOT / "docs/dependencies.md").read_text()
    names = [re.split(r"[<>=!\[ ]", entry)[0] for entry in wanted]
    assert [entry for entry in names if f"`{entry}`" not in text] == []


def test_constraints_are_plain_and_clean() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [
        line for line in lines if line and not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)
    ] == []
    assert not {"litellm==1.82.7", "litellm==1.82.8"} & set(lines)
