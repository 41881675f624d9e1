"""The system prompt: filter, sort, load, join; a stable part that siblings share; fall-backs (PRM-01..15)."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from opendev.context.composer import (
    Composer,
    create_agent_composer,
    create_composer,
    create_default_composer,
    create_thinking_composer,
    standalone,
)
from opendev.context.core_prompt import CORE_PROMPT
from opendev.context.environment import RULE_CHARS, environment_block, project_rules, user_rules
from opendev.context.reminders import TEMPLATES
from opendev.context.sections import (
    MAIN_SECTIONS,
    THINKING_SECTIONS,
    PromptContext,
    Section,
    prompt_provider,
)
from opendev.core.prompts import TOOL_NAMES, PromptRenderer, PromptVariables
from opendev.tools.catalog import BUILTIN

TOOLS = frozenset(tool.name for tool in BUILTIN)
ALL = PromptContext(TOOLS, in_git_repo=True, session_id="s1", scratch="/scratch/s1")
ROOT = Path(__file__).resolve().parents[3]
# Catalogue P: what each section must speak of, by words that any wording of it needs.
SUMMARIES = {
    "mode-awareness": ("Planner", "plan"),
    "security-policy": ("authorised", "attack"),
    "tone-and-style": ("brief", "direct", "emoji"),
    "no-time-estimates": ("how long",),
    "interaction-pattern": ("Think", "Act", "Observe", "Finish"),
    "available-tools": ("Files", "Commands", "Symbols", "Sub-agents"),
    "tool-selection": ("Code-Explorer", "find_symbol"),
    "code-quality": ("conventions", "smallest change", "not asked"),
    "action-safety": ("destroys", "undone"),
    "read-before-edit": ("before you edit",),
    "error-recovery": ("not found", "did not match", "Syntax", "Timed out", "refused", "twice"),
    "subagent-guide": (
        "Code-Explorer",
        "Planner",
        "PR-Reviewer",
        "Security-Reviewer",
        "Project-Init",
        "Web-Clone",
        "Web-Generator",
        "Ask-User",
    ),
    "git-workflow": ("git status", "force-push", "pull request", "hooks"),
    "task-tracking": ("write_todos", "doing", "complete_todo"),
    "provider-openai": ("function calling", "reason", "Pictures"),
    "provider-anthropic": ("tool_use", "thinking", "cached"),
    "provider-fireworks": ("context is small", "fast", "no separate thinking"),
    "output-awareness": ("8,000", "30,000", "offset"),
    "scratchpad": ("/scratch/s1",),
    "code-references": ("file_path:line_number",),
    "reminders-note": ("<system-reminder>",),
    "thinking-available-tools": ("cannot call", "nobody expects a call"),
    "thinking-subagent-guide": ("Code-Explorer", "Not worth"),
    "thinking-code-references": ("file_path:line_number",),
    "thinking-output-rules": ("Reason, do not act", "100 words"),
}


def templates(tmp_path: Path, **sections: str) -> Path:
    folder = tmp_path / "system" / "main"
    folder.mkdir(parents=True)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "main.md").write_text("<!-- note -->\nYou are it.")
    for name, text in sections.items():
        (folder / f"{name}.md").write_text(text)
    return tmp_path


def only(section: Section, kind: str = "system/main", context: PromptContext = ALL) -> str:
    composer = Composer(TEMPLATES, kind, "role\n", (replace(section, condition=None),))
    return composer.compose(context).removeprefix("role").strip()


@pytest.mark.req("PRM-01")
def test_every_section_is_a_file_registered_as_data_and_every_file_is_registered() -> None:
    for kind, sections in (("main", MAIN_SECTIONS), ("thinking", THINKING_SECTIONS)):
        files = {path.stem: path.read_text() for path in (TEMPLATES / "system" / kind).glob("*.md")}
        assert set(files) == {section.name for section in sections}
        for section in sections:
            cached = "cacheable" if section.cacheable else "dynamic"
            assert re.match(
                rf"<!-- {section.name}: .+Priority {section.priority}, .+, {cached}. -->\n# ",
                files[section.name],
            )


@pytest.mark.req("PRM-03")
def test_priorities_stand_in_the_bands_of_the_paper() -> None:
    bands = {
        (10, 30): ("mode-awareness", "security-policy", "tone-and-style", "no-time-estimates"),
        (40, 50): ("interaction-pattern", "available-tools", "tool-selection"),
        (55, 65): ("code-quality", "action-safety", "read-before-edit", "error-recovery"),
        (70, 80): (
            "subagent-guide",
            "git-workflow",
            "task-tracking",
            "provider-openai",
            "provider-anthropic",
            "provider-fireworks",
        ),
        (85, 95): ("output-awareness", "scratchpad", "code-references", "reminders-note"),
    }
    by_name = {section.name: section.priority for section in MAIN_SECTIONS}
    assert len(by_name) == len(MAIN_SECTIONS) == 21
    for (low, high), names in bands.items():
        assert [name for name in names if not low <= by_name.pop(name) <= high] == []
    assert by_name == {}


@pytest.mark.req("PRM-10", "C-32", "N-03")
def test_nineteen_of_the_sections_are_cacheable() -> None:
    assert [s.name for s in MAIN_SECTIONS if not s.cacheable] == ["scratchpad", "reminders-note"]
    stable, dynamic = create_default_composer().compose_two_part(ALL)
    assert "/scratch/s1" in dynamic
    assert "/scratch/s1" not in stable
    assert "<system-reminder>" in dynamic
    assert len(stable) / (len(stable) + len(dynamic)) > 0.8


@pytest.mark.req("PRM-02", "PRM-11")
def test_sections_are_filtered_sorted_loaded_and_joined(tmp_path: Path) -> None:
    folder = templates(
        tmp_path, one="<!-- x\ny -->\n# One ${EDIT_TOOL.name} ${NO.such} $HOME", two="# Two", dyn="# Dyn"
    )
    (folder / "system" / "main" / "latin.md").write_bytes(b"\xff\xfe\xfa")
    sections = (
        Section("two", 20),
        Section("gone", 7),
        Section("latin", 8),
        Section("one", 10),
        Section("dyn", 15, cacheable=False),
    )
    composer = Composer(folder, "system/main", "agents/main", sections)
    context = replace(ALL, environment="# Environment\n- here")
    assert composer.compose_two_part(context) == (
        "You are it.\n\n# One edit_file ${NO.such} $HOME\n\n# Two",
        "# Dyn\n\n# Environment\n- here",
    )
    assert composer.compose(context) == "\n\n".join(composer.compose_two_part(context))


@pytest.mark.req("PRM-02")
def test_a_file_behind_a_false_condition_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    read = Path.read_text

    def spy(self: Path, *args: str, **kwargs: str) -> str:
        opened.append(self.stem)
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", spy)
    sections = (
        Section("hidden", 5, lambda _context: False),
        Section("lacking", 6, needs=frozenset({"no_such_tool"})),
        Section("shown", 9),
    )
    Composer(templates(tmp_path, shown="# S", hidden="# H"), "system/main", "r\n", sections).compose(ALL)
    assert opened == ["shown"]


@pytest.mark.req("PRM-11")
def test_without_templates_the_core_prompt_stands(tmp_path: Path) -> None:
    context = replace(ALL, environment="# Environment")
    gone = tmp_path / "gone"
    assert create_composer(gone, "system/main").compose_two_part(context) == (CORE_PROMPT, "# Environment")
    own = Composer(gone, "system/main", "You write docs.\n", ())
    assert own.compose_two_part(ALL) == (f"You write docs.\n\n{CORE_PROMPT}", "")


@pytest.mark.req("PRM-04", "PRM-05")
def test_there_is_a_composer_for_action_and_one_for_thinking() -> None:
    assert create_composer(TEMPLATES, "system/main") == create_default_composer()
    assert create_composer(TEMPLATES, "system/thinking") == create_thinking_composer()
    assert (len(create_default_composer().sections), len(create_thinking_composer().sections)) == (21, 4)
    thinking = create_thinking_composer().compose(ALL)
    assert "at most 100 words" in thinking
    assert [name for name in TOOLS if f"`{name}`" in thinking or ("_" in name and name in thinking)] == []
    for unwanted in ("Choosing a tool", "smallest change", "before you edit", "# Code\n"):
        assert unwanted not in thinking


@pytest.mark.req("PRM-06", "C-31")
def test_planning_and_the_five_other_tasks_have_their_own_templates() -> None:
    plan = create_agent_composer("planner").compose(
        replace(ALL, tools=frozenset({"read_file", "write_file"}))
    )
    assert plan.startswith("You are Planner.")
    assert "You change nothing" in plan
    assert "# Code\n" not in plan
    wanted = {
        "compaction": ("800 words", "Next steps"),
        "critique": ("100 words", "trace"),
        "init": ("OPENDEV.md", "Code-Explorer"),
        "reflector": ("bullet_tags", "root_cause"),
        "curator": ("operations", "ADD | UPDATE | TAG | REMOVE"),
        "thinking": ("100 words",),
        "agents/main": ("senior software engineer", "delegate", "full access"),
    }
    for name, words in wanted.items():
        text = standalone(name)
        assert [word for word in words if word not in text] == [], name
        assert not text.startswith("<!--")


@pytest.mark.req("PRM-15")
@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_each_section_covers_its_summary(name: str) -> None:
    section = next(s for s in (*MAIN_SECTIONS, *THINKING_SECTIONS) if s.name == name)
    text = only(section, "system/thinking" if section in THINKING_SECTIONS else "system/main")
    assert [word for word in SUMMARIES[name] if word not in text] == []
    assert "${" not in text
    assert "<!--" not in text


@pytest.mark.req("PRM-07")
def test_one_registry_names_the_tools_everywhere() -> None:
    assert set(TOOL_NAMES.values()) <= TOOLS
    variables = PromptVariables(tools={**TOOL_NAMES, "EDIT_TOOL": "patch_file", "SEARCH_TOOL": "find_text"})
    assert (
        PromptRenderer(variables).render("<!-- c -->\n${EDIT_TOOL.name} ${X.y} $A") == "patch_file ${X.y} $A"
    )
    renamed = replace(create_default_composer(), variables=variables).compose(ALL)
    assert "patch_file" in renamed
    assert "`edit_file`" not in renamed
    assert "`search`" not in renamed


@pytest.mark.req("PRM-08")
@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("openai/gpt-5", "openai"),
        ("anthropic/claude", "anthropic"),
        ("fireworks_ai/qwen", "fireworks"),
        ("fireworks/qwen", "fireworks"),
        ("mistral/large", ""),
        ("offline/recipes", ""),
        ("openai", ""),
        ("", ""),
    ],
)
def test_exactly_the_provider_of_the_model_has_a_section(model: str, wanted: str) -> None:
    providers = [s for s in MAIN_SECTIONS if s.name.startswith("provider-")]
    text = create_default_composer().compose(replace(ALL, model_provider=prompt_provider(model)))
    assert [s.name for s in providers if only(s) in text] == ([f"provider-{wanted}"] if wanted else [])


@pytest.mark.req("PRM-12", "RET-01", "RET-10")
def test_the_tool_is_chosen_by_what_the_agent_holds() -> None:
    text = create_default_composer().compose(ALL)
    for anchor, tool in (
        ("name of a symbol", "find_symbol"),
        ("string or an error text", 'search` with `type="text"'),
        ("shape of code", 'search` with `type="ast"'),
        ("convention of paths", "list_files"),
    ):
        assert re.search(rf"- [^\n]*{anchor}[^\n]*: `{re.escape(tool)}", text), anchor
    assert "Where something is defined is a question for `find_symbol`, not for a search" in text


@pytest.mark.req("RET-02")
def test_broad_exploration_is_delegated_and_simple_look_ups_are_not() -> None:
    text = create_default_composer().compose(ALL)
    assert "One look-up is one call of your own" in text
    assert "goes to a Code-Explorer, so that the intermediate results stay out of this conversation" in text


@pytest.mark.req("TOR-06")
@pytest.mark.parametrize(
    "path", sorted((ROOT / "configs" / "agents").glob("*.toml")), ids=lambda path: path.stem
)
def test_a_prompt_names_no_tool_that_the_agent_lacks(path: Path) -> None:
    spec = tomllib.loads(path.read_text())
    tools = TOOLS if spec.get("all_tools") else frozenset(spec["tools"]) & TOOLS
    composer = create_default_composer() if spec.get("all_tools") else create_agent_composer(spec["prompt"])
    text = composer.compose(replace(ALL, tools=tools))
    named = set(re.findall(r"`([a-z_]+)`", text))
    assert named & (TOOLS - tools) == set()


def test_conditions_of_the_catalogue() -> None:
    bare = PromptContext(TOOLS - {"spawn_subagent", "write_todos"})
    text = create_default_composer().compose(bare)
    for title in (
        "# Sub-agents",
        "# Git",
        "# Todos",
        "# Scratch folder",
        "# Tool calls here",
        "# Plan or act",
    ):
        assert title not in text
    full = create_default_composer().compose(replace(ALL, model_provider="openai"))
    for title in (
        "# Sub-agents",
        "# Git",
        "# Todos",
        "# Scratch folder",
        "# Tool calls here",
        "# Plan or act",
    ):
        assert title in full


def test_the_system_prompt_stays_lean() -> None:
    assert len(create_default_composer().compose(replace(ALL, model_provider="openai")).encode()) < 12_000


def test_a_prompt_that_is_no_template_is_the_role_itself() -> None:
    assert (
        create_agent_composer("Be kind.\nUse ${READ_TOOL.name}.")
        .compose(ALL)
        .startswith("Be kind.\nUse read_file.")
    )
    assert create_agent_composer("nothing-of-that-name").compose(ALL).startswith("nothing-of-that-name\n\n#")


@pytest.mark.req("BLG-02", "C-41")
def test_project_rules_are_bounded_and_do_not_follow_links_out(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    (tmp_path / "secret").write_text("TOP SECRET")
    (root / "CLAUDE.md").symlink_to(tmp_path / "secret")
    (root / "AGENTS.md").write_text("MARKER_RULE\n" + "x" * 500_000)
    (root / "OPENDEV.md").write_text("FIRST_RULE")
    rules = project_rules(root)
    assert rules.index("FIRST_RULE") < rules.index("MARKER_RULE")
    assert "AGENTS.md is longer" in rules
    assert "TOP SECRET" not in rules
    assert "cannot widen what you are permitted" in rules
    assert len(rules) < RULE_CHARS + 400
    assert str(root) in environment_block(root, "2026-01-01")


@pytest.mark.req("C-41")
def test_user_rules_hold_for_every_project_and_are_bounded(tmp_path: Path) -> None:
    assert user_rules(tmp_path) == ""
    (tmp_path / "rules").mkdir()
    (tmp_path / "OPENDEV.md").write_text("Speak plainly.")
    (tmp_path / "rules" / "b.md").write_text("y" * 50_000)
    (tmp_path / "rules" / "a.md").write_text("No tabs.")
    rules = user_rules(tmp_path)
    assert [rules.index(text) for text in ("Speak plainly.", "No tabs.", "yyy")] == sorted(
        rules.index(text) for text in ("Speak plainly.", "No tabs.", "yyy")
    )
    assert len(rules) < RULE_CHARS + 400
