"""notebook_edit: one cell changes, the rest keeps its bytes, nothing invalid is written (NB-01)."""

import json
from pathlib import Path
from typing import Any

import pytest
from opendev.core.scope import Scope
from opendev.core.tool import ToolResult
from opendev.tools.notebook_edit import TOOL, Args
from support.tool_context import make_context

CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Títle\n", "text"]},
    {
        "cell_type": "code",
        "execution_count": 3,
        "id": "calc",
        "metadata": {"tags": ["keep"]},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}],
        "source": ["print(1 + 1)"],
    },
]
META = {"language_info": {"name": "python"}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}


def write(root: Path, *, indent: int | None = 1, minor: int = 5, **more: Any) -> Path:
    path = root / "n.ipynb"
    notebook = {"cells": CELLS, "metadata": META, "nbformat": 4, "nbformat_minor": minor, **more}
    path.write_text(json.dumps(notebook, indent=indent, ensure_ascii=False) + "\n", "utf-8")
    return path


async def edit(root: Path, scope: Scope | None = None, **args: Any) -> ToolResult:
    ctx = make_context(root, scope=scope or Scope())
    return await TOOL.run(Args.model_validate({"file_path": "n.ipynb", **args}), ctx)


@pytest.mark.req("NB-01")
@pytest.mark.parametrize("indent", [1, 2, None])
async def test_replacing_a_code_cell_drops_its_outputs_and_nothing_else(
    tmp_path: Path, indent: int | None
) -> None:
    path = write(tmp_path, indent=indent)
    before = path.read_text()
    result = await edit(tmp_path, action="replace", cell="calc", source="x = 1\nprint(x)\n")
    assert result.changed == ("n.ipynb",)
    cell = json.loads(path.read_text())["cells"][1]
    assert cell == {**CELLS[1], "execution_count": None, "outputs": [], "source": ["x = 1\n", "print(x)\n"]}
    assert list(cell) == list(CELLS[1])
    wanted = {"cells": [CELLS[0], cell], "metadata": META, "nbformat": 4, "nbformat_minor": 5}
    assert path.read_text() == json.dumps(wanted, indent=indent, ensure_ascii=False) + "\n"
    assert path.read_text()[:60] == before[:60]


@pytest.mark.req("NB-01")
async def test_inserting_and_deleting(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert (await edit(tmp_path, action="insert", cell=1, source="y = 2")).ok
    assert (await edit(tmp_path, action="insert", cell=-1, cell_type="markdown", source="end")).ok
    assert (await edit(tmp_path, action="delete", cell="intro")).ok
    cells = json.loads(path.read_text())["cells"]
    assert [("".join(cell["source"]), cell["cell_type"]) for cell in cells] == [
        ("y = 2", "code"), ("print(1 + 1)", "code"), ("end", "markdown"),
    ]  # fmt: skip
    assert len({cell["id"] for cell in cells}) == 3
    assert (await edit(tmp_path, action="replace", cell=0, cell_type="raw", source="r")).ok
    assert "outputs" not in json.loads(path.read_text())["cells"][0]


async def test_an_older_minor_format_gets_no_ids(tmp_path: Path) -> None:
    cells = [{key: value for key, value in cell.items() if key != "id"} for cell in CELLS]
    path = write(tmp_path, minor=4, cells=cells)
    assert (await edit(tmp_path, action="insert", cell=0, source="a")).ok
    assert "id" not in json.loads(path.read_text())["cells"][0]


@pytest.mark.req("NB-01")
@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"action": "replace", "cell": 2}, "there is no cell 2"),
        ({"action": "replace", "cell": "nope"}, "no cell with the id"),
        ({"action": "delete", "cell": -2}, "there is no cell -2"),
        ({"action": "delete", "cell": 0, "file_path": "../n.ipynb"}, "refused"),
        ({"action": "delete", "cell": 0, "file_path": "none.ipynb"}, "does not exist"),
    ],
)
async def test_wrong_places_are_errors_that_name_the_cells(
    tmp_path: Path, args: dict[str, Any], why: str
) -> None:
    path = write(tmp_path)
    before = path.read_bytes()
    result = await edit(tmp_path, **args)
    assert not result.ok
    assert why in result.text
    assert path.read_bytes() == before


@pytest.mark.req("NB-01")
async def test_what_is_no_valid_notebook_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    for text, why in (
        ("{", "not valid JSON"),
        ("[]", "no Jupyter notebook of format 4"),
        ('{"nbformat": 3, "worksheets": []}', "no Jupyter notebook of format 4"),
        (
            '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}',
            "damaged already",
        ),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "damaged already"),
    ):
        path.write_text(text)
        result = await edit(tmp_path, action="delete", cell=0)
        assert why in result.text
        assert path.read_text() == text


@pytest.mark.req("NB-01", "SWM-05")
async def test_scope_and_stale_reads_hold(tmp_path: Path) -> None:
    path = write(tmp_path)
    refused = await edit(tmp_path, Scope(avoid=("*.ipynb",)), action="delete", cell=0)
    assert "outside of what this task may write" in refused.text
    ctx = make_context(tmp_path)
    ctx.seen.record(path.resolve(), b"something else")
    stale = await TOOL.run(Args(file_path="n.ipynb", action="delete", cell=0), ctx)
    assert "has changed since you read it" in stale.text
    assert len(json.loads(path.read_text())["cells"]) == 2
    assert not TOOL.read_only
