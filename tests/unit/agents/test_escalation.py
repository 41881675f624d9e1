"""A model that keeps failing hands over to the strongest tier (MOD-10)."""

from pathlib import Path

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.events import Notice
from support.agents import Bench, ScriptedShell
from support.scripted_model import Step, call, calls, says

STRONG = "test/strong"


def bench(tmp_path: Path, *steps: Step, after: int = 2, **settings: object) -> Bench:
    made = Bench(tmp_path, *steps)
    update = {"escalate_after": after, "escalate_to": STRONG, **settings}
    made.settings = made.settings.model_copy(update=update)
    return made


def missing(number: int) -> Step:
    return calls(call("read_file", f"c{number}", file_path=f"{number}.txt"))


@pytest.mark.req("MOD-10")
async def test_after_so_many_failures_in_a_row_the_stronger_model_takes_over(tmp_path: Path) -> None:
    made = bench(tmp_path, missing(1), missing(2), calls(call("list_files", "l")), says("Done."))
    assert (await made.run()).status is AgentStatus.DONE
    assert [request.model for request in made.model.requests] == ["test/model", "test/model", STRONG, STRONG]
    (told,) = [event.text for event in made.events if isinstance(event, Notice)]
    assert told == "test/model failed 2 times in a row; test/strong takes over."


@pytest.mark.req("MOD-10")
async def test_a_success_between_starts_the_count_again(tmp_path: Path) -> None:
    made = bench(
        tmp_path, missing(1), calls(call("list_files", "l")), missing(2), says("failure accepted: gone")
    )
    await made.run()
    assert {request.model for request in made.model.requests} == {"test/model"}


@pytest.mark.req("MOD-10")
async def test_refused_claims_count_too(tmp_path: Path) -> None:
    made = bench(
        tmp_path,
        says("Done."),
        calls(call("write_file", "w", file_path="a", content="x")),
        says("Done."),
        says("Now."),
    )
    made.shell = ScriptedShell(1, 1, 0)
    made.model.add(says("Now."))
    report = await made.run(verify="check")
    assert [request.model for request in made.model.requests][:3] == ["test/model"] * 3
    assert made.model.requests[3].model == STRONG
    assert report.status is not AgentStatus.DONE or report.text == "Now."


@pytest.mark.req("MOD-10")
@pytest.mark.parametrize(
    "settings",
    [{"after": 0}, {"escalate_to": ""}, {"context_limits": {STRONG: 8_000}}],
    ids=["off", "no stronger model", "a smaller window"],
)
async def test_without_a_better_choice_the_model_stays(tmp_path: Path, settings: dict[str, object]) -> None:
    after = int(str(settings.pop("after", 2)))
    made = bench(
        tmp_path, missing(1), missing(2), missing(3), says("failure accepted: gone"), after=after, **settings
    )
    await made.run()
    assert {request.model for request in made.model.requests} == {"test/model"}
    told = [event.text for event in made.events if isinstance(event, Notice)]
    assert len(told) == ("context_limits" in settings)
