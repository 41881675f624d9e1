"""Memory beside the loop: reflector, curator, their retries and budgets; its failure has no effect (MEM-03, 08..13, C-21)."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.agents.memory import REFLECT_EVERY
from opendev.agents.settings import AgentSettings, MemorySettings
from opendev.context.playbook import LESSONS, Bullet, Playbook
from opendev.core.agent import AgentStatus, Budget
from opendev.core.chat import ModelFailed, ModelReply, ModelRequest, Role, SystemMessage, ThinkingLevel
from opendev.core.ticket import Delete
from opendev.store.layout import Layout
from support.agents import Bench
from support.scripted_model import call, calls, done, failed, says

REFLECTION = {
    "reasoning": "the tests were run from the wrong folder",
    "error_identification": "exit 4",
    "root_cause": "wrong folder",
    "correct_approach": "run pytest from the root",
    "bullet_tags": [{"id": "b1", "tag": "helpful"}],
}
BATCH = {"reasoning": "new", "operations": [{"type": "ADD", "content": "Run pytest from the root."}]}


class TwoModels:
    """The action model plays ``turns`` listings and an end; ``memory`` answers the compact model's requests."""

    def __init__(
        self, turns: int, memory: Callable[[ModelRequest], str | ModelFailed], delay: float = 0.0
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.learning: list[ModelRequest] = []
        self.thoughts: list[ModelRequest] = []
        self._turns = turns
        self._memory = memory
        self._delay = delay

    async def complete(self, request: ModelRequest, on_delta: object = None) -> ModelReply | ModelFailed:
        if request.role is Role.COMPACT:
            self.learning.append(request)
            await asyncio.sleep(self._delay)
            answer = self._memory(request)
            return answer if isinstance(answer, ModelFailed) else says(answer)
        if request.role is Role.THINKING:
            self.thoughts.append(request)
            return says("Think.")
        self.requests.append(request)
        turn = len(self.requests)
        if turn <= self._turns:
            await asyncio.sleep(0.01)
            return calls(call("list_files", f"c{turn}", path=".", max_results=turn + 1), text=f"step {turn}")
        return done("Done.")


def of(request: ModelRequest) -> str:
    """Which of the prompts a memory request carries."""
    system = request.messages[0]
    assert isinstance(system, SystemMessage)
    return "curator" if "keep the playbook" in system.stable else "reflector"


def usual(request: ModelRequest) -> str:
    return json.dumps(BATCH if of(request) == "curator" else REFLECTION)


def bench(tmp_path: Path, model: TwoModels, **memory: object) -> Bench:
    made = Bench(tmp_path)
    made.client = model
    settings = MemorySettings.model_validate({"playbook": True, "learn": "beside", "share": 1.0, **memory})
    made.settings = AgentSettings(
        models={Role.ACTION: "test/model", Role.COMPACT: "test/small"}, memory=settings
    )
    return made


def stored(made: Bench) -> Playbook:
    path = Layout(made.home).project(made.root) / "playbook.json"
    return Playbook.model_validate_json(path.read_bytes()) if path.exists() else Playbook()


def store(made: Bench, *bullets: Bullet) -> None:
    path = Layout(made.home).project(made.root) / "playbook.json"
    path.write_text(Playbook(bullets=bullets, serial=len(bullets)).to_json())


@pytest.mark.req("MEM-07", "MEM-08", "MEM-09", "MEM-10", "C-18", "C-21")
async def test_five_agent_messages_teach_the_playbook_and_the_next_run_is_shown_the_lesson(
    tmp_path: Path,
) -> None:
    model = TwoModels(REFLECT_EVERY, usual)
    made = bench(tmp_path, model)
    store(made, Bullet(id="b1", text="Look before you leap.", created=1.0))
    report = await made.run(prompt="run the tests from the root", scopes=("run:r1",))
    assert report.status is AgentStatus.DONE
    assert [of(request) for request in model.learning] == ["reflector", "curator"]
    asked = model.learning[0]
    assert (asked.role, asked.model, asked.scopes) == (Role.COMPACT, "test/small", ("run:r1",))
    text = str(asked.messages[1])
    assert "[b1] Look before you leap." in text
    assert "step 1" in text
    after = stored(made)
    assert [(b.text, b.helpful) for b in after.bullets] == [
        ("Look before you leap.", 1),
        ("Run pytest from the root.", 0),
    ]
    assert len(after.lessons) == 1
    snapshot = made.home / "runs" / "r1" / "playbook.json"
    assert Playbook.model_validate_json(snapshot.read_bytes()) == after
    assert "Noted: Run pytest from the root." in [e.text for e in made.events if e.kind == "notice"]
    again = TwoModels(0, usual)
    made.client = again
    await made.run(prompt="run the tests", id="a2", run_id="r2")
    system = again.requests[0].messages[0]
    assert isinstance(system, SystemMessage)
    assert "- Run pytest from the root." in system.dynamic
    assert "Run pytest" not in system.stable
    assert again.learning == []


async def test_usage_of_memory_is_in_the_report(tmp_path: Path) -> None:
    model = TwoModels(REFLECT_EVERY, usual)
    report = await bench(tmp_path, model).run()
    assert report.model_calls == len(model.requests) + len(model.learning)
    assert report.usage.input == 100 * report.model_calls


@pytest.mark.req("MEM-11")
async def test_unreadable_answers_are_asked_for_again(tmp_path: Path) -> None:
    bad = iter(
        [
            "no json at all",
            "```json\n" + json.dumps(REFLECTION) + "\n```",
            '{"operations": 7}',
            json.dumps(BATCH),
        ]
    )
    model = TwoModels(REFLECT_EVERY, lambda _: next(bad))
    made = bench(tmp_path, model)
    await made.run()
    assert [of(request) for request in model.learning] == ["reflector", "reflector", "curator", "curator"]
    assert "could not be read as JSON" in str(model.learning[1].messages[-1])
    assert "could not be read as a batch of changes" in str(model.learning[3].messages[-1])
    assert [bullet.text for bullet in stored(made).bullets] == ["Run pytest from the root."]


def answers(request: ModelRequest) -> str:
    """Each run has a cause of its own; the retrospective finds what they share."""
    if "Find what recurs" in str(request.messages[0]):
        found = {"operations": [{"type": "ADD", "content": "Run every tool from the root."}]}
        return json.dumps(found)
    if of(request) == "curator":
        return json.dumps({"operations": []})
    return json.dumps(REFLECTION)


@pytest.mark.req("MEM-14")
async def test_every_ten_lessons_of_past_sessions_a_retrospective_distils_a_pattern(tmp_path: Path) -> None:
    earlier = tuple(f"Task {n}: wrong folder; use the root" for n in range(LESSONS - 2))
    path = Layout(tmp_path / "home").project(bench(tmp_path, TwoModels(0, answers)).root) / "playbook.json"
    path.write_text(Playbook(lessons=earlier).to_json())
    seen: list[tuple[int, int, list[str]]] = []
    for number in range(3):
        model = TwoModels(REFLECT_EVERY, answers)
        made = bench(tmp_path, model)
        await made.run(id=f"a{number}", run_id=f"r{number}", prompt=f"Newest {number}")
        asked = [r for r in model.learning if "Find what recurs" in str(r.messages[0])]
        after = stored(made)
        seen.append((len(asked), len(after.lessons), [bullet.text for bullet in after.bullets]))
        if asked:
            told = asked[0].messages[1].model_dump_json()
            newest = [f"Newest {n}: wrong folder; run pytest from the root" for n in range(2)]
            assert [line for line in (*earlier, *newest) if line not in told] == []
    rule = "Run every tool from the root."
    assert seen == [(0, LESSONS - 1, []), (1, 0, [rule]), (0, 1, [rule])]


@pytest.mark.req("MEM-11", "MEM-12")
async def test_memory_that_fails_has_no_effect(tmp_path: Path) -> None:
    for n, answer in enumerate(
        ["never json", failed("down"), "", json.dumps({"operations": [{"type": "BURN"}]})]
    ):
        model = TwoModels(REFLECT_EVERY, lambda _, answer=answer: answer)
        made = bench(tmp_path, model)
        report = await made.run(id=f"a{n}")
        assert (report.status, report.text) == (AgentStatus.DONE, "Done.")
        assert len(model.learning) <= 3
        assert stored(made) == Playbook()


async def test_a_playbook_that_cannot_be_written_has_no_effect(tmp_path: Path) -> None:
    made = bench(tmp_path, TwoModels(REFLECT_EVERY, usual))
    made.home.mkdir()
    (made.home / "projects").write_text("a file, not a folder")
    assert (await made.run()).status is AgentStatus.DONE


@pytest.mark.req("MEM-12")
async def test_memory_is_off_the_critical_path(tmp_path: Path) -> None:
    model = TwoModels(12, usual, delay=30.0)
    made = bench(tmp_path, model, finish_s=0.05)
    async with asyncio.timeout(20):
        report = await made.run()
    assert report.status is AgentStatus.DONE
    assert len(model.requests) == 13
    assert len(model.learning) == 1  # one at a time


async def test_memory_has_a_budget_of_its_own(tmp_path: Path) -> None:
    model = TwoModels(30, usual)
    await bench(tmp_path, model, max_tokens=300).run()
    assert len(model.learning) == 3  # 105 tokens each
    model = TwoModels(30, usual)
    await bench(tmp_path, model).run(id="a1b", budget=Budget(max_tokens=2_000))
    assert len(model.learning) == 2  # a tenth of the task's budget
    model = TwoModels(6, usual)
    made = bench(tmp_path, model, max_tokens=0)
    store(made, Bullet(id="b1", text="Known already.", created=1.0))
    await made.run(id="a2")
    assert model.learning == []
    assert "Known already." in str(model.requests[0].messages[0])


@pytest.mark.req("MEM-08")
async def test_after_the_first_reflection_memory_costs_a_share_of_the_work(tmp_path: Path) -> None:
    """By default a task of ten answers pays for one look back, not for two."""
    model = TwoModels(9, usual)
    await bench(tmp_path, model, share=0.1).run()
    assert [of(request) for request in model.learning] == ["reflector", "curator"]
    model = TwoModels(26, usual)  # 105 tokens each: the memory's 210 are a tenth after twenty answers
    made = bench(tmp_path, model, share=0.1)
    await made.run(id="a2")
    assert [of(request) for request in model.learning] == ["reflector", "curator"] * 2
    assert "step 6" in str(model.learning[2].messages[1])  # nothing between the two is left out
    assert "step 20" in str(model.learning[2].messages[1])


@pytest.mark.parametrize(("learn", "asked"), [("after", 2), ("never", 0)])
async def test_one_prompt_learns_after_its_answer_or_not_at_all(
    tmp_path: Path, learn: str, asked: int
) -> None:
    model = TwoModels(2 * REFLECT_EVERY, usual)
    made = bench(tmp_path, model, learn=learn)
    store(made, Bullet(id="b1", text="Known already.", created=1.0))
    assert (await made.run()).status is AgentStatus.DONE
    assert len(model.learning) == asked
    assert "Known already." in str(model.requests[0].messages[0])
    if asked:
        assert f"step {2 * REFLECT_EVERY}" in str(model.learning[0].messages[1])  # all of it, at the end


@pytest.mark.parametrize(
    ("agent", "fields", "memory"),
    [
        ("Main", {}, {"playbook": False}),
        ("Main", {"parent": "p", "depth": 1}, {}),
        ("Coder", {}, {}),
        ("Main", {"recipe": (Delete(path="a"),), "models": {Role.ACTION: "test/model"}}, {}),
    ],
    ids=["off", "sub-agent", "ticket", "recipe"],
)
async def test_who_has_no_playbook(
    tmp_path: Path, agent: str, fields: dict[str, Any], memory: dict[str, Any]
) -> None:
    model = TwoModels(REFLECT_EVERY + 1, usual)
    made = bench(tmp_path, model, **memory)
    store(made, Bullet(id="b1", text="Known already.", created=1.0))
    await made.run(agent, **fields)
    assert model.learning == []
    assert "Known already." not in str(model.requests[0].messages[0])


@pytest.mark.req("MEM-01", "MEM-02", "MEM-03", "MEM-05")
async def test_the_thinking_model_gets_a_bounded_context_whose_summary_is_made_beside_the_loop(
    tmp_path: Path,
) -> None:
    model = TwoModels(60, lambda request: f"SUMMARY {len(str(request.messages))}")
    made = bench(tmp_path, model, playbook=False)
    made.settings = made.settings.model_copy(update={"thinking": ThinkingLevel.LOW, "max_iterations": 99})
    report = await made.run(prompt="THE TASK")
    assert report.status is AgentStatus.DONE
    captured = [request.messages[1].model_dump_json() for request in model.learning]
    assert len(captured) >= 60 * 2 // 5 - 2
    assert all("THE TASK" in text and "SUMMARY" not in text for text in captured)
    assert "step 1 " in captured[-1].replace("\\n", " ")  # the full history, not the rest since the last time
    thoughts = [request.messages[-1].model_dump_json() for request in model.thoughts]
    assert "THE TASK" in thoughts[-1]
    assert "SUMMARY" in thoughts[20]
    assert len(thoughts[59]) <= 1.1 * len(thoughts[15])


@pytest.mark.req("MEM-13")
async def test_notes_outside_of_the_window_can_be_written_and_read_back(tmp_path: Path) -> None:
    notes = str(tmp_path / "home" / "scratch" / "a1" / "memory.md")
    made = Bench(
        tmp_path,
        calls(call("write_file", "w", file_path=notes, content="the port is 8123")),
        calls(call("read_file", "r", file_path=notes)),
        done("Read."),
    )
    await made.run()
    assert "the port is 8123" in str(made.model.requests[2].messages[-1])
    assert str(tmp_path / "home" / "scratch" / "a1") in str(made.model.requests[0].messages[0])
