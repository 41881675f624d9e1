"""The system prompt: filter, sort, load, join; a stable part that siblings share (PRM-02, PRM-09, PRM-11)."""

from pathlib import Path

import pytest
from opendev.context.composer import Composer
from opendev.context.environment import RULE_CHARS, environment_block, project_rules
from opendev.context.sections import MAIN_SECTIONS, PROMPT_VARIABLES, PromptContext, Section

ALL = PromptContext(tools=frozenset(PROMPT_VARIABLES.values()), in_git_repo=True)


def templates(tmp_path: Path, **sections: str) -> Path:
    folder = tmp_path / "system" / "main"
    folder.mkdir(parents=True)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "main.md").write_text("<!-- note -->\nYou are it.")
    for name, text in sections.items():
        (folder / f"{name}.md").write_text(text)
    return tmp_path


@pytest.mark.req("PRM-02")
def test_sections_are_filtered_sorted_loaded_and_joined(tmp_path: Path) -> None:
    folder = templates(
        tmp_path, one="<!-- x\ny -->\n# One ${EDIT_TOOL.name} ${NO.such} $HOME", two="# Two", dyn="# Dyn"
    )
    (folder / "system" / "main" / "hidden.md").mkdir()  # opening it would fail
    sections = (
        Section("two", 20),
        Section("hidden", 5, lambda _context: False),
        Section("gone", 7),
        Section("one", 10),
        Section("dyn", 15, cacheable=False),
    )
    system = Composer(folder, sections).compose("main", ALL, subagent=False)
    assert system.stable == "You are it.\n\n# One edit_file ${NO.such} $HOME\n\n# Two"
    assert system.dynamic == "# Dyn"


def test_a_prompt_that_is_no_template_is_the_role_itself(tmp_path: Path) -> None:
    composer = Composer(templates(tmp_path), ())
    assert composer.role("Be kind.\nUse ${READ_TOOL.name}.") == "Be kind.\nUse read_file."
    assert composer.role("nothing-of-that-name") == "nothing-of-that-name"


def test_every_section_has_its_file_and_every_variable_is_known() -> None:
    for section in MAIN_SECTIONS:
        text = Composer(sections=(section,)).compose("x\n", ALL, subagent=False)
        body = text.stable + text.dynamic
        assert "# " in body, section.name
        assert "${" not in body, section.name
        assert "<!--" not in body, section.name


@pytest.mark.req("TOR-06")
def test_a_prompt_names_no_tool_that_the_agent_lacks() -> None:
    tools = frozenset({"read_file", "search", "list_files", "find_symbol"})
    system = Composer().compose("code-explorer", PromptContext(tools), subagent=True)
    absent = set(PROMPT_VARIABLES.values()) - tools
    assert [name for name in absent if name in system.stable + system.dynamic] == []


def test_project_rules_are_bounded_and_do_not_follow_links_out(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    (tmp_path / "secret").write_text("TOP SECRET")
    (root / "CLAUDE.md").symlink_to(tmp_path / "secret")
    (root / "AGENTS.md").write_text("MARKER_RULE\n" + "x" * 500_000)
    rules = project_rules(root)
    assert "MARKER_RULE" in rules
    assert "AGENTS.md is longer" in rules
    assert "TOP SECRET" not in rules
    assert len(rules) < RULE_CHARS + 300
    assert str(root) in environment_block(root, tmp_path, "2026-01-01")
