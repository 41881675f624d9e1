"""The schedule under every order of events: one final status each, one live attempt at most, parents first, always an end."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.ticket import TaskStatus
from opendev.swarm.schedule import (
    PERMANENT,
    Abort,
    Check,
    Checked,
    Command,
    End,
    Event,
    Failed,
    Land,
    Landed,
    Node,
    Review,
    Reviewed,
    Schedule,
    Stage,
    Stopped,
    Work,
    Worked,
)

FAILURES = [status for status in TaskStatus if status is not TaskStatus.MERGED]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Node]:
    count = draw(st.integers(1, 7))
    nodes: dict[str, Node] = {}
    for number in range(count):
        earlier = (
            st.sets(st.sampled_from([f"t{n}" for n in range(number)]), max_size=2)
            if number
            else st.just(set[str]())
        )
        used = draw(st.integers(0, 2))
        nodes[f"t{number}"] = Node(
            parents=tuple(sorted(draw(earlier))),
            waits=tuple(sorted(draw(earlier))),
            attempts=draw(st.integers(1, 3)),
            used=used,
            worked=used > 0 and draw(st.booleans()),
            ended=draw(st.sampled_from([None, None, None, TaskStatus.MERGED, TaskStatus.AGENT_FAILED])),
        )
    return nodes


class Watch:
    """Checks every command against what is known so far."""

    def __init__(self, nodes: dict[str, Node], concurrency: int) -> None:
        self.nodes, self.concurrency = nodes, concurrency
        self.live: dict[str, Work | Check | Review | Land] = {}
        self.ended: dict[str, TaskStatus] = {n: node.ended for n, node in nodes.items() if node.ended}
        self.started: dict[str, int] = {}
        self.stopped = False

    def take(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            match command:
                case End(task, status, attempts):
                    assert task not in self.ended, "two final statuses"
                    assert task not in self.live, "ended while an attempt lives"
                    assert attempts <= self.nodes[task].used + self.nodes[task].attempts
                    self.ended[task] = status
                case Abort(task, attempt):
                    assert self.live[task].attempt == attempt
                case Work() | Check() | Review() | Land():
                    self.start(command)
        slots = sum(not isinstance(command, Land) for command in self.live.values())
        assert slots <= self.concurrency

    def start(self, command: Work | Check | Review | Land) -> None:
        node, first = self.nodes[command.task], command.task not in self.started
        assert not self.stopped, "started after the stop"
        assert command.task not in self.live, "two live attempts"
        assert command.task not in self.ended
        if first or isinstance(command, Work):
            assert all(self.ended.get(parent) is TaskStatus.MERGED for parent in node.parents)
            assert all(other in self.ended for other in node.waits)
        if isinstance(command, Work):
            assert command.attempt > self.started.get(command.task, node.used), (
                "attempt numbers are never used twice"
            )
        if first and node.worked:
            assert isinstance(command, Check), "a durable commit is not worked again"
        self.started[command.task] = command.attempt
        self.live[command.task] = command


def answers(command: Work | Check | Review | Land, stopped: bool) -> list[Event]:
    good: dict[type, type] = {Work: Worked, Check: Checked, Review: Reviewed, Land: Landed}
    done = good[type(command)](command.task, command.attempt)
    bad = [
        Failed(command.task, command.attempt, status, "why", retry)
        for status in FAILURES
        for retry in (True, False)
    ]
    if stopped and not isinstance(command, Land):
        return [item for item in bad if item.status is TaskStatus.CANCELLED]
    return [done] * len(bad) + bad


@settings(max_examples=300, deadline=None)
@given(graphs(), st.integers(1, 4), st.data())
def test_every_run_ends_well(nodes: dict[str, Node], concurrency: int, data: st.DataObject) -> None:
    schedule, watch = Schedule(nodes, concurrency), Watch(nodes, concurrency)
    watch.take(schedule.begin())
    for _ in range(400):
        if schedule.done:
            break
        if not watch.stopped and data.draw(st.integers(0, 19)) == 0:
            watch.stopped = True
            status = data.draw(st.sampled_from([TaskStatus.CANCELLED, TaskStatus.BUDGET]))
            watch.take(schedule.handle(Stopped(status, "stop")))
            continue
        assert watch.live, "nothing runs and nothing is done"
        task = data.draw(st.sampled_from(sorted(watch.live)))
        event = data.draw(st.sampled_from(answers(watch.live[task], watch.stopped)))
        stale = Worked(task, watch.live[task].attempt + 1)
        assert schedule.handle(stale) == ()
        del watch.live[task]
        watch.take(schedule.handle(event))
    assert schedule.done
    assert watch.live == {}
    assert set(watch.ended) == set(nodes)
    assert all(schedule.status(task) is status for task, status in watch.ended.items())
    for task, node in nodes.items():
        if node.ended is None and watch.ended[task] is TaskStatus.MERGED:
            assert all(watch.ended[parent] is TaskStatus.MERGED for parent in node.parents)


def drive(schedule: Schedule, script: dict[Any, list[Event]]) -> list[Command]:
    seen: list[Command] = []
    todo = list(schedule.begin())
    while todo:
        command = todo.pop(0)
        seen.append(command)
        if events := script.get((type(command), command.task)):
            todo += schedule.handle(events.pop(0))
    return seen


def test_the_failing_output_is_handed_to_the_next_attempt() -> None:
    schedule = Schedule({"a": Node(attempts=2)}, 1)
    red = Failed("a", 1, TaskStatus.VERIFY_FAILED, "red: test_x")
    seen = drive(schedule, {(Work, "a"): [Worked("a", 1)], (Check, "a"): [red]})
    assert seen == [Work("a", 1), Check("a", 1), Work("a", 2, "red: test_x")]


def test_permanent_causes_are_never_retried() -> None:
    for status in PERMANENT:
        schedule = Schedule({"a": Node(attempts=5)}, 1)
        assert drive(schedule, {(Work, "a"): [Failed("a", 1, status)]})[-1] == End("a", status, 1)
    schedule = Schedule({"a": Node(attempts=5)}, 1)
    failed = Failed("a", 1, TaskStatus.INFRA, "bad key", retry=False)
    assert drive(schedule, {(Work, "a"): [failed]})[-1] == End("a", TaskStatus.INFRA, 1, "bad key")


def test_no_wave_barrier() -> None:
    """The child of a fast ticket starts while a slow ticket of the first wave still works."""
    schedule = Schedule({"slow": Node(), "fast": Node(), "child": Node(parents=("fast",))}, 3)
    schedule.begin()
    for event in (Worked("fast", 1), Checked("fast", 1), Reviewed("fast", 1)):
        schedule.handle(event)
    assert schedule.handle(Landed("fast", 1)) == (End("fast", TaskStatus.MERGED, 1), Work("child", 1))
    assert schedule.stage("slow") is Stage.WORKING
