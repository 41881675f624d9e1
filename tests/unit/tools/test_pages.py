"""The pages of the tools in docs/tools are those of the tools as they are (REG-07)."""

from pathlib import Path

import pytest
from opendev.tools.catalog import BUILTIN
from opendev.tools.pages import index_of, page_of

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "tools"


@pytest.mark.req("REG-07")
def test_no_page_is_stale() -> None:
    wanted = {f"{tool.name}.md": page_of(tool) for tool in BUILTIN} | {"README.md": index_of(BUILTIN)}
    found = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    assert stale == [], "run scripts/tool-pages"


def test_a_page_names_arguments_defaults_effects_and_aliases() -> None:
    run = next(page_of(tool) for tool in BUILTIN if tool.name == "run_command")
    assert "| `command` | string | required | Run by bash. |" in run
    assert "| `background` | boolean | `false` |" in run
    assert "`cmd` for `command`" in run
    assert "Effects: exec, net, read, write. In plan mode: shut." in run
    ask = next(page_of(tool) for tool in BUILTIN if tool.name == "ask_user")
    assert (
        "list of {header: string, multiSelect: boolean, options: list of {description: string, label: string}"
        in ask
    )
    assert "In plan mode: open." in ask
