"""What the prompts of the agents demand, as the models get them (SUB-07, SUB-11, SUB-12, SUB-17, SUB-19, MOD-08)."""

from pathlib import Path

import pytest
from opendev.agents.factory import AgentSuite
from opendev.context.composer import create_thinking_composer
from opendev.context.sections import PromptContext
from opendev.core.chat import Role
from opendev.swarm.prompts import read_verdict
from support.agents import Bench


def prompt_of(tmp_path: Path, agent: str) -> str:
    """The system prompt of a compiled type, white space folded."""
    suite = Bench(tmp_path).factory().create_agents(tmp_path / "project")
    found = suite.subagents.get(agent)
    return " ".join((found.agent if found else suite.main).system_prompt.split())


def needs(prompt: str, *words: str) -> None:
    assert [word for word in words if word not in prompt] == []


@pytest.mark.req("SUB-07")
def test_the_main_agent_knows_when_to_parallelise_and_how_to_merge(tmp_path: Path) -> None:
    needs(
        prompt_of(tmp_path, "Main"),
        "several analyses are independent, request them in one answer",
        "large code base",
        "needs the result of another, request it afterwards",
        "Merge their results into one answer ordered by topic",
    )


@pytest.mark.req("SUB-11")
def test_the_explorer_has_stop_conditions(tmp_path: Path) -> None:
    needs(
        prompt_of(tmp_path, "Code-Explorer"),
        "Depth before breadth",
        "The evidence is clear: stop",
        "brought nothing new: stop",
        "or a range of it, again: stop at once",
    )


@pytest.mark.req("SUB-12")
def test_the_planner_has_three_steps_seven_parts_and_names_its_file(tmp_path: Path) -> None:
    prompt = prompt_of(tmp_path, "Planner")
    needs(
        prompt,
        "1. Explore, reading only",
        "2. Analyse",
        "3. Write the plan",
        "plan_file_path: <absolute path>",
    )
    parts = (
        "Goal",
        "Context",
        "Files to modify",
        "New files",
        "Implementation steps",
        "Verification criteria",
        "Risks",
    )
    needs(prompt, *(f"## {part}" for part in parts))


@pytest.mark.req("SUB-17")
def test_thinking_points_to_the_explorer() -> None:
    thought = create_thinking_composer().compose(PromptContext(frozenset({"spawn_subagent"})))
    needs(thought, "Code-Explorer", "broad questions about the code")


@pytest.mark.req("SUB-19")
def test_reviewers_generator_and_init_say_what_they_must_deliver(tmp_path: Path) -> None:
    needs(prompt_of(tmp_path, "Security-Reviewer"), "a severity and a confidence", "`critical`", "0.0 to 1.0")
    needs(prompt_of(tmp_path, "PR-Reviewer"), "before it is merged", "git diff")
    needs(prompt_of(tmp_path, "Web-Generator"), "React", "TypeScript", "Tailwind")
    needs(prompt_of(tmp_path, "Project-Init"), "Write `OPENDEV.md`")


@pytest.mark.req("SUB-19")
def test_severity_and_confidence_reach_the_verdict() -> None:
    said = (
        'Two things.\n```verdict\n{"verdict": "reject", "findings": [{"severity": "high", "confidence": 0.9, '
        '"file": "a.py", "line": 3, "text": "sink"}]}\n```'
    )
    outcome = read_verdict("Security-Reviewer", said)
    assert outcome.verdict == "reject"
    assert [(found["severity"], found["confidence"]) for found in outcome.findings] == [("high", 0.9)]


@pytest.mark.req("MOD-08")
def test_another_model_means_another_suite(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    suites: list[AgentSuite] = []
    for model in ("openai/gpt-5", "anthropic/claude-sonnet-4-5"):
        bench.settings = bench.settings.model_copy(update={"models": {Role.ACTION: model}})
        suites.append(bench.factory().create_agents(bench.root))
    one, two = suites
    assert one.main.system_prompt != two.main.system_prompt
    assert one.main.registry is not two.main.registry
    assert one.main.tool_schemas == two.main.tool_schemas
    for name in one.subagents.names:
        first, second = one.subagents.get(name), two.subagents.get(name)
        assert first is not None
        assert second is not None
        assert first.agent is not second.agent
