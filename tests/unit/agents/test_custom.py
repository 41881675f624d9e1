"""Agent types from files: the format, what is refused, and that a project's own need consent (CFG-11, SUB-15, AGT-09)."""

import hashlib
import json
from pathlib import Path

import pytest
from opendev.agents.custom import MAX_BYTES, CustomAgents, agent_types, load_custom
from opendev.agents.specs import SAFE_TOOLS, TODO_TOOLS, builtin_specs
from opendev.agents.subagents import on_offer
from opendev.core.agent import AgentSpec
from opendev.tools.catalog import BUILTIN
from support.agents import Bench
from support.scripted_model import says

DOC = """---
name: Doc-Writer
description: Writes
  documentation.
tools: [read_file, search, write_file, write_todos]
model: acme/small
max_steps: 12
color: blue
temperature: 0.3
---
You write documentation.

Keep it short.
"""


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def one(front: str, body: str = "Work.") -> str:
    return f"---\ndescription: d\n{front}\n---\n{body}\n"


def load(tmp_path: Path) -> CustomAgents:
    return load_custom(tmp_path / "home", tmp_path / "project")


def tools_of(tmp_path: Path, front: str) -> tuple[str, ...]:
    put(tmp_path / "home/agents", "t.md", one(front))
    (spec,) = load(tmp_path).specs
    return spec.tools or ()


@pytest.mark.req("CFG-11", "SUB-15", "AGT-09")
def test_a_file_becomes_a_type_like_the_built_in_ones(tmp_path: Path) -> None:
    path = put(tmp_path / "home/agents", "team/doc.md", DOC)
    found = load(tmp_path)
    assert found.specs == (
        AgentSpec(
            name="Doc-Writer",
            description="Writes documentation.",
            prompt="You write documentation.\n\nKeep it short.\n",
            tools=("read_file", "search", "write_file"),  # the todo list is the main agent's (SUB-04)
            model="acme/small",
            writes=True,
            max_iterations=12,
            builtin=False,
        ),
    )
    assert found.files == {"Doc-Writer": path}
    assert found.refused == ()
    assert found.notes == (f"The agent file {path} sets temperature, which OpenDev does not use.",)
    assert list(agent_types(found.specs)) == [*builtin_specs(), "Doc-Writer"]


@pytest.mark.req("CFG-11", "SUB-15")
async def test_it_is_offered_and_runs_with_its_own_prompt_and_tools(tmp_path: Path) -> None:
    put(tmp_path / "home/agents", "doc.md", DOC.replace("model: acme/small\n", ""))
    (spec,) = load(tmp_path).specs
    bench = Bench(tmp_path, says("Done."))
    bench.settings = bench.settings.model_copy(update={"custom": (spec,)})
    suite = bench.factory().create_agents(bench.root)
    spawn = next(schema for schema in suite.main.tool_schemas if schema.name == "spawn_subagent")
    assert "- Doc-Writer: Writes documentation." in spawn.description
    task = bench.task().model_copy(update={"spec": spec})
    await bench.factory().agent_for(task).run(task, bench.token)
    (request,) = bench.model.requests
    assert request.messages[0].role == "system"
    assert request.messages[0].stable.startswith("You write documentation.\n\nKeep it short.")
    assert [tool.name for tool in request.tools] == ["read_file", "search", "write_file"]


@pytest.mark.parametrize(
    ("front", "tools"),
    [
        ("", SAFE_TOOLS),
        ('tools: "*"', tuple(t.name for t in BUILTIN if t.name not in TODO_TOOLS)),
        ("tools: read_file, run_command", ("read_file", "run_command")),
        (
            "tools: {exclude: [run_command]}",
            tuple(t.name for t in BUILTIN if t.name not in {*TODO_TOOLS, "run_command"}),
        ),
        (
            "tools: [read_file, run_command]\npermission: {run_command: deny, read_file: allow}",
            ("read_file",),
        ),
        ("tools: []", ()),
    ],
)
def test_the_spellings_of_a_tool_list(tmp_path: Path, front: str, tools: tuple[str, ...]) -> None:
    assert tools_of(tmp_path, front) == tools


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no front matter at all", "no description"),
        ("---\ndescription: d\n---\n", "no prompt"),
        (one("name: 'a b'"), "is not a word"),
        (one("name: Coder"), "is built in"),
        (one("name: Main"), "is built in"),
        (one("tools: 7"), "its tools are neither"),
        (one("tools: [1, 2]"), "its tools are neither"),
        (one("permission: {run_command: ask}"), "only allow and deny"),
        (one("permission: {'*.py': {edit: deny}}"), "only allow and deny"),
        (one("permission: [read_file]"), "no list of keys"),
        (one("steps: 0"), "no number from 1 to 1000"),
        (one("mode: other"), "none of primary"),
        ("---\n- a\n---\nx\n", "no list of keys"),
        ("---\na: [\n---\nx\n", "no YAML"),
        ("---\na: !!python/object/apply:os.getcwd []\n---\nx\n", "no YAML"),
        (one("x: " + "y" * MAX_BYTES), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_costs_nobody_else(
    tmp_path: Path, text: str, why: str
) -> None:
    put(tmp_path / "home/agents", "a.md", text)
    put(tmp_path / "home/agents", "good.md", one(""))
    found = load(tmp_path)
    assert [spec.name for spec in found.specs] == ["good"]
    (sentence,) = found.refused
    assert why in sentence


def test_disabled_hidden_and_primary_types(tmp_path: Path) -> None:
    put(tmp_path / "home/agents", "off.md", one("disable: true"))
    put(tmp_path / "home/agents", "hidden.md", one("hidden: true"))
    put(tmp_path / "home/agents", "first.md", one("mode: primary"))
    put(tmp_path / "home/agents", "seen.md", one("mode: subagent"))
    specs = load(tmp_path).specs
    assert [spec.name for spec in specs] == ["first", "hidden", "seen"]
    assert on_offer(specs) == "- seen: d"


def test_of_two_files_with_one_name_the_first_counts(tmp_path: Path) -> None:
    put(tmp_path / "home/agents", "a/x.md", one("", "First."))
    put(tmp_path / "home/agents", "b/x.md", one("", "Second."))
    found = load(tmp_path)
    assert [spec.prompt for spec in found.specs] == ["First.\n"]
    assert "has the same name" in found.refused[0]


def test_a_projects_file_needs_consent_to_its_content(tmp_path: Path) -> None:
    path = put(tmp_path / "project/.opendev/agents", "evil.md", one('tools: "*"'))
    found = load(tmp_path)
    assert found.specs == ()
    assert "you have not agreed" in found.notes[0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    put(tmp_path / "home", "trust.json", json.dumps({"files": {str(path): digest}}))
    assert [spec.name for spec in load(tmp_path).specs] == ["evil"]
    path.write_text(one('tools: "*"', "Work differently."))  # other content: consent is gone
    assert load(tmp_path).specs == ()
    put(tmp_path / "home", "trust.json", "{")
    assert load(tmp_path).specs == ()


def test_a_projects_type_never_replaces_the_users(tmp_path: Path) -> None:
    put(tmp_path / "home/agents", "mine.md", one("", "Mine."))
    path = put(tmp_path / "project/.opendev/agents", "mine.md", one("", "Theirs."))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    put(tmp_path / "home", "trust.json", json.dumps({"files": {str(path): digest}}))
    found = load(tmp_path)
    assert [spec.prompt for spec in found.specs] == ["Mine.\n"]
    assert "has the same name" in found.refused[0]
