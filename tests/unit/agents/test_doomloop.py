"""Repetition: judged on the present batch only, with room for pollers and edits (T-01, T-02, LOOP-09)."""

import pytest
from opendev.agents.doomloop import REPEATS, DoomLoop, Level, Repetition
from opendev.core.chat import ToolCall, ToolMessage
from opendev.tools.catalog import BUILTIN
from opendev.tools.registry import ToolRegistry


def loop() -> DoomLoop:
    return DoomLoop(ToolRegistry(BUILTIN))


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="x", name=name, arguments=dict(arguments))


EDIT = call("edit_file", file_path="b", old_content="x", new_content="y")
RESULT = ToolMessage(call_id="x", name="edit_file", content="ok")


@pytest.mark.req("LOOP-09")
def test_the_third_equal_call_is_a_repetition_other_arguments_are_not() -> None:
    subject = loop()
    assert all(subject.check([call("read_file", file_path=str(n))]) is None for n in range(30))
    batch = [call("read_file", file_path="a", limit=1)]
    assert [subject.check(batch) for _ in range(2)] == [None, None]
    hit = subject.check([call("read_file", limit=1, file_path="a")])
    assert hit is not None
    assert (hit.count, hit.level) == (3, Level.WARN)
    again = subject.check(batch)
    assert again is not None
    assert again.level is Level.ASK


@pytest.mark.req("T-01")
def test_an_unrelated_call_after_a_broken_loop_goes_through() -> None:
    subject = loop()
    for _ in range(4):
        subject.check([call("read_file", file_path="a")])
    assert subject.check([call("read_file", file_path="b")]) is None


@pytest.mark.req("T-02")
def test_pollers_are_exempt_and_edits_make_reading_and_running_new() -> None:  # T-02
    subject = loop()
    poll = call("get_subagent_output", agent_id="a")
    assert all(subject.check([poll]) is None for _ in range(10))
    test = call("run_command", command="pytest -q")
    for _ in range(10):
        assert subject.check([test]) is None
        subject.note(EDIT, RESULT)
    edit = call("edit_file", file_path="a", old_content="x", new_content="y")
    hits: list[Repetition | None] = []
    for _ in range(REPEATS):
        hits.append(subject.check([edit]))
        subject.note(EDIT, RESULT)
    assert hits[-1] is not None


def test_three_equal_calls_in_one_answer_are_a_repetition_and_reset_starts_over() -> None:
    subject = loop()
    batch = [call("read_file", file_path="a")] * 3
    assert subject.check(batch) is not None
    subject.reset()
    assert subject.check(batch[:2]) is None


@pytest.mark.req("T-02")
def test_a_command_whose_output_changes_is_no_repetition_but_its_duration_does_not_count() -> None:
    subject = loop()
    test = call("run_command", command="pytest -q")
    for n in range(10):
        assert subject.check([test]) is None
        subject.note(test, RESULT.model_copy(update={"content": f"{10 - n} failed in {n}.12s"}))
    hits: list[Repetition | None] = []
    for n in range(REPEATS + 1):
        hits.append(subject.check([test]))
        subject.note(test, RESULT.model_copy(update={"content": f"1 failed in {n}.12s", "is_error": True}))
    assert hits[-1] is not None


def test_the_memory_of_outputs_is_bounded() -> None:
    subject = loop()
    for n in range(500):
        subject.note(call("run_command", command=f"c{n}"), RESULT)
    assert len(vars(subject)["_outputs"]) == 40
