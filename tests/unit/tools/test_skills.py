"""Skills: tiers, consent, one load a session (SKL-01..06, T33)."""

from pathlib import Path

import pytest
from opendev.core.errors import OpenDevError
from opendev.core.tool import ToolContext
from opendev.store.consent import agree
from opendev.tools.invoke_skill import TOOL, Args
from opendev.tools.skills import SkillLoader, discover
from support.tool_context import make_context


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def skill(description: str, body: str = "Do $1 of $ARGUMENTS.", name: str = "review") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


def context(home: Path, project: Path) -> ToolContext:
    return make_context(project, skills=SkillLoader(discover(home, project).skills).by_name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.req("SKL-05")
def test_the_projects_skill_wins_but_only_after_consent_to_its_content(home: Path, project: Path) -> None:
    put(home / "skills", "review.md", skill("Use when it is mine."))
    theirs = put(project / ".opendev" / "skills", "review/SKILL.md", skill("Use when it is theirs."))
    found = discover(home, project)
    assert [s.description for s in found.skills] == ["Use when it is mine."]
    assert "not trusted" in found.refused[0]
    agree(home, *found.untrusted["review"])
    assert [s.description for s in discover(home, project).skills] == ["Use when it is theirs."]
    theirs.write_text(skill("Use always!"))
    assert [s.description for s in discover(home, project).skills] == ["Use when it is mine."]


@pytest.mark.req("SKL-06", "SKL-01")
@pytest.mark.parametrize(
    "text",
    ["no front matter", "---\n[\n---\nx", "---\nname: a b\ndescription: x\n---\n", "---\nname: a\n---\n"],
)
def test_a_broken_file_costs_only_itself(home: Path, project: Path, text: str) -> None:
    put(home / "skills", "bad.md", text)
    put(home / "skills", "good.md", skill("Use when good.", name="good"))
    found = discover(home, project)
    assert [s.name for s in found.skills] == ["good"]
    assert "bad.md" in found.refused[0]


@pytest.mark.req("SKL-02", "PRM-14")
def test_the_index_holds_names_and_descriptions_and_no_body(home: Path, project: Path) -> None:
    put(home / "skills", "review.md", skill("Use when\n  reviewing.", "SECRET BODY"))
    note = SkillLoader(discover(home, project).skills).note()
    assert "- review: Use when reviewing." in note
    assert "SECRET" not in note
    assert SkillLoader().note() == ""


@pytest.mark.req("SKL-03", "SKL-04")
async def test_a_skill_is_loaded_once_with_its_arguments_and_files(home: Path, project: Path) -> None:
    put(home / "skills", "review/SKILL.md", skill("Use when reviewing."))
    put(home / "skills", "review/checklist.txt", "x")
    ctx = context(home, project)
    first = await TOOL.run(Args(name="review", arguments="tests today"), ctx)
    assert "Do tests of tests today." in first.text
    assert first.text.startswith('<skill_content name="review">')
    assert "checklist.txt" in first.text
    assert "description:" not in first.text
    second = await TOOL.run(Args(name="review"), ctx)
    assert "already loaded" in second.text
    assert "Do " not in second.text
    again = await TOOL.run(Args(name="review"), context(home, project))
    assert "<skill_content" in again.text


async def test_an_unknown_and_a_changed_skill_are_refused(home: Path, project: Path) -> None:
    path = put(home / "skills", "review.md", skill("Use when reviewing."))
    ctx = context(home, project)
    assert "review" in (await TOOL.run(Args(name="other"), ctx)).text
    path.write_text(skill("Use when reviewing.", "Something else."))
    with pytest.raises(OpenDevError, match="changed"):
        await TOOL.run(Args(name="review"), ctx)
    assert ctx.memo.skills == set()
