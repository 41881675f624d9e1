"""Events for screens and the figures made of them: bounded, exact, and nothing waits for a screen (TUI-04, ARC-05)."""

from collections.abc import Callable
from typing import Any

import pytest
from opendev.cli.repl import fan as fans
from opendev.cli.repl.fan import LIMIT, Fan
from opendev.cli.repl.figures import KNOWN_MAX, Figures
from opendev.cli.repl.turns import WAITING_MAX
from opendev.core.chat import Usage
from opendev.core.events import (
    AgentFinished,
    AgentStarted,
    Compacted,
    Cost,
    Notice,
    ProcessChanged,
    TextDelta,
)
from opendev.core.session import Spent

from .conftest import Opened

Open = Callable[..., Opened]


async def test_a_screen_that_sleeps_is_bounded_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fans, "LIMIT", 10)
    assert LIMIT == 5_000
    fan = Fan()
    screen = fan.subscribe()
    for number in range(20):
        fan.put(Notice(level="info", text=str(number)))
        fan.put(TextDelta(text="x"))
    fan.close()
    texts = [event.text async for event in screen if isinstance(event, Notice)]
    assert "came faster" in texts[0]
    assert texts[-1] == "19"
    assert len(texts) <= 12


async def test_two_screens_see_the_same_and_one_may_leave() -> None:
    fan = Fan()
    fan.put(Notice(level="info", text="before any screen"))
    first: Any = fan.subscribe()
    assert (await anext(first)).text == "before any screen"
    second = fan.subscribe()
    fan.put(Notice(level="info", text="a"))
    assert (await anext(first)).kind == "notice"
    await first.aclose()
    fan.put(Notice(level="info", text="b"))
    fan.close()
    assert [event.text async for event in second if isinstance(event, Notice)] == ["a", "b"]


async def test_waiting_messages_are_bounded_and_the_user_is_told(talk: Open) -> None:
    async with talk() as one:
        turns: Any = one.repl.turns
        turns.prompt("first")
        results = [turns.prompt(f"message {number}") for number in range(WAITING_MAX + 5)]
        assert [result.success for result in results].count(False) == 5
        assert "wait already" in results[-1].message
        assert len(turns._typed) + len(turns._waiting) == WAITING_MAX


def paid(calls: int, tokens: int, agent: str = "main-x") -> Cost:
    return Cost(agent=agent, calls=calls, total=Usage(input=tokens, output=calls, cost_usd=calls / 10))


@pytest.mark.req("TUI-04", "SES-09")
def test_costs_add_up_over_runs_hubs_and_settled_turns() -> None:
    figures = Figures(
        "main-x", Spent(total_input_tokens=1000, total_cost_usd=1.0, api_call_count=7), window=1000
    )
    figures.take(paid(1, 100))
    assert (figures.usage.input, figures.calls) == (1100, 8)
    # A lost answer cost too; the hub knows of a second call whose event is still on its way.
    known = Usage(input=150, output=2, cost_usd=0.2), 2
    figures.settle(Spent(total_input_tokens=1150, total_cost_usd=1.2, api_call_count=9), known)
    assert (figures.usage.input, round(figures.usage.cost_usd, 6), figures.calls) == (1150, 1.2, 9)
    figures.take(paid(2, 150))
    assert (figures.usage.input, figures.calls) == (1150, 9)
    figures.take(paid(3, 350))
    assert (figures.usage.input, figures.calls) == (1350, 10)
    figures.fresh_hub()
    assert figures.usage.input == 1150
    figures.take(paid(1, 50))
    assert figures.usage.input == 1200


@pytest.mark.req("TUI-04")
def test_the_context_is_the_largest_call_of_the_turn_of_the_main_agent() -> None:
    figures = Figures("main-x", window=1000)
    figures.take(AgentStarted(agent="main-x", name="Main"))
    figures.take(paid(1, 399))
    assert figures.context == 0.4
    figures.take(paid(2, 500))  # thinking: a smaller request
    figures.take(paid(3, 5000, agent="child"))
    assert figures.context == 0.4
    figures.take(Compacted(agent="main-x", stage="summarise", before=400, after=100))
    assert figures.context == 0.1
    figures.take(AgentStarted(agent="main-x", name="Main"))
    figures.take(paid(4, 5198))
    assert figures.context == 0.199


@pytest.mark.req("TUI-04", "TUI-05")
def test_agents_and_tasks_are_those_at_work_and_bounded() -> None:
    figures = Figures("main-x")
    figures.take(AgentStarted(agent="main-x", name="Main"))
    figures.take(AgentStarted(agent="c1", name="Coder", parent="main-x"))
    assert tuple(figures.agents.values()) == ("Coder",)
    figures.take(AgentFinished(agent="c1", name="Coder", status="done"))
    assert figures.agents == {}
    for number in range(KNOWN_MAX + 10):
        figures.take(ProcessChanged(id=str(number), command="x", pid=1, state="running"))
        if number:
            figures.take(ProcessChanged(id=str(number), command="x", pid=1, state="completed", exit_code=0))
    assert len(figures.tasks) == KNOWN_MAX
    assert [task.id for task in figures.running] == ["0"]
