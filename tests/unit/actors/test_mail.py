"""Outbox, mailbox, postroom, event log and permits: order, doubles, bounds and back-pressure (ACT-05, ACT-12)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.eventlog import EventLog
from opendev.actors.main import Mailbox
from opendev.actors.outbox import Outbox
from opendev.actors.permits import Permits
from opendev.actors.postroom import Postroom
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import Notice, TextDelta
from opendev.core.mail import ENVELOPE, Body, Envelope, Failed, Ok, Progress
from support.waiting import until


def notice(text: str) -> Progress:
    return Progress(event=Notice(level="info", text=text))


class FakePost:
    """Takes batches; fails the first ``failures`` times after having taken them (a lost acknowledgement)."""

    def __init__(self, failures: int = 0) -> None:
        self.name = "post"
        self.failures = failures
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, method: str, *args: Any) -> Any:
        await self.gate.wait()
        self.batches.append(args[0])
        if self.failures:
            self.failures -= 1
            raise OpenDevError(ErrorKind.INFRA, "lost")
        return len(args[0])

    def stream(self, method: str, *args: Any) -> Any:
        raise NotImplementedError


def outbox(post: FakePost, **more: Any) -> Outbox:
    return Outbox(post=post, sender="a#1", session="s", clock=SystemClock(), window_s=0.01, **more)


def room(tmp_path: Path, seen: list[Envelope], reply: Body | None = None) -> Postroom:
    async def take(envelope: Envelope) -> None:
        seen.append(envelope)

    async def answer(envelope: Envelope) -> Body:
        if reply is None:
            raise ValueError("a defect")
        return reply

    return Postroom(path=tmp_path / "mail.jsonl", session="s", clock=SystemClock(), take=take, reply=answer)


async def test_a_batch_whose_acknowledgement_was_lost_is_taken_once(tmp_path: Path) -> None:
    post, seen = FakePost(failures=1), list[Envelope]()
    box = outbox(post)
    for number in range(3):
        box.put(notice(str(number)))
    await box.flush()
    assert len(post.batches) == 2
    assert post.batches[0] == post.batches[1]
    office = room(tmp_path, seen)
    for batch in post.batches:
        await office.post(batch)
    assert [e.seq for e in seen] == [1, 2, 3]
    await office.close()


async def test_one_batch_is_in_flight_and_a_full_outbox_drops_only_ephemeral_events() -> None:
    post = FakePost()
    box = outbox(post, limit=2)
    post.gate.clear()
    box.put(notice("a"))
    await asyncio.sleep(0.05)  # in flight, held
    box.put(notice("b"))
    box.put(notice("c"))
    box.put(Progress(event=TextDelta(agent="x", text="lost")))
    box.put(notice("d"))
    assert box.dropped == 1
    waiting = asyncio.create_task(box.room())
    await asyncio.sleep(0.03)
    assert (waiting.done(), post.batches) == (False, [])
    post.gate.set()
    await waiting
    await box.flush()
    told = [ENVELOPE.validate_json(line).seq for batch in post.batches for line in batch]
    assert told == [1, 2, 3, 4]


async def test_pieces_of_one_text_travel_as_one() -> None:
    post = FakePost()
    box = outbox(post)
    for piece in "hello":
        box.put(Progress(event=TextDelta(agent="x", text=piece)))
    await box.flush()
    (letter,) = post.batches[0]
    body = ENVELOPE.validate_json(letter).body
    assert isinstance(body, Progress)
    assert isinstance(body.event, TextDelta)
    assert body.event.text == "hello"


async def test_an_unreachable_hub_is_an_answer() -> None:
    class Gone(FakePost):
        async def ask(self, method: str, *args: Any) -> Any:
            raise OpenDevError(ErrorKind.INFRA, "The hub is gone.")

    answer = await outbox(Gone()).ask(Ok())
    assert isinstance(answer, Failed)
    assert answer.error.message == "The hub is gone."


async def test_the_mailbox_is_bounded_and_reports_askers_that_left() -> None:
    box = Mailbox(limit=2)
    await box.post(["1", "2"])
    third = asyncio.create_task(box.post(["3"]))
    ask = asyncio.create_task(box.ask("q"))
    gone = asyncio.create_task(box.ask("r"))
    await asyncio.sleep(0.01)
    assert not third.done()
    gone.cancel()
    await asyncio.sleep(0.01)
    batch = await box.drain(0.0, 1.0)
    assert batch == {"posts": ["1", "2"], "asks": [(1, "q"), (2, "r")], "gone": [2]}
    assert await third == 1
    await box.answer([(1, "yes"), (2, "nobody")])
    assert await ask == "yes"
    assert (await box.drain(0.0, 1.0))["posts"] == ["3"]
    assert (await box.drain(0.0, 0.01))["posts"] == []


async def test_unreadable_mail_and_defects_are_answered(tmp_path: Path) -> None:
    office = room(tmp_path, [])
    answer = ENVELOPE.validate_json(await office.ask("{}"))
    assert isinstance(answer.body, Failed)

    class Box:
        name = "main"
        answers: list[tuple[int, str]] = []
        drained = False

        async def ask(self, method: str, *args: Any) -> Any:
            if method == "answer":
                self.answers.extend(args[0])
                return None
            if self.drained:
                await asyncio.sleep(60)
            self.drained = True
            letter = Envelope(id="i", session="s", sender="a#1", body=Ok()).to_json()
            return {"posts": [], "asks": [(7, letter)], "gone": []}

        def stream(self, method: str, *args: Any) -> Any:
            raise NotImplementedError

    box = Box()
    drain = asyncio.create_task(office.drain(box))
    await until(lambda: bool(box.answers))
    drain.cancel()
    ((key, letter),) = box.answers
    body = ENVELOPE.validate_json(letter).body
    assert key == 7
    assert isinstance(body, Failed)
    assert "ValueError: a defect" in body.error.message
    await office.close()


async def test_a_slow_subscriber_misses_no_durable_event_and_a_late_one_gets_all(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", run_id="r", clock=SystemClock(), queue_limit=5)
    await log.start()
    stream = log.subscribe()
    log.emit(Notice(level="info", text="0"))
    await log.flush()
    got = [await anext(stream)]  # subscribed; now it sleeps while much happens
    for number in range(1, 30):
        log.emit(TextDelta(text="x"))
        log.emit(Notice(level="info", text=str(number)))
    await log.flush()
    await log.close()
    got += [event async for event in stream]
    assert [e.text for e in got if isinstance(e, Notice)] == [str(n) for n in range(30)]
    assert sum(isinstance(e, TextDelta) for e in got) <= 5
    assert [e.seq async for e in log.subscribe(after_seq=27)] == [28, 29, 30]
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600
    again = EventLog(tmp_path / "events.jsonl", run_id="r", clock=SystemClock())
    await again.start()
    again.emit(Notice(level="info", text="more"))
    await again.close()
    assert [e.seq async for e in again.subscribe(after_seq=30)] == [31]


@pytest.mark.req("ACT-12")
async def test_permits_queue_lend_and_come_back_on_every_path() -> None:
    permits = Permits(1, lambda: None)
    await permits.take("parent")
    child = asyncio.create_task(permits.take("child"))
    given_up = asyncio.create_task(permits.take("impatient"))
    await asyncio.sleep(0)
    given_up.cancel()
    async with permits.lent("parent"):
        await asyncio.wait_for(child, 1)
        permits.end("child")
    assert (permits.held, permits.peak) == (1, 1)
    async with permits.lent("parent"):
        permits.end("parent")  # it died while it waited: nothing to take back
    permits.end("parent")
    assert permits.held == 0


async def test_calls_that_come_back_at_once_take_one_permit() -> None:
    permits = Permits(1, lambda: None)
    await permits.take("parent")

    async def refused() -> None:
        async with permits.lent("parent"):
            await asyncio.sleep(0)

    other = asyncio.create_task(permits.take("other"))
    calls = [asyncio.create_task(refused()) for _ in range(3)]
    await asyncio.sleep(0.01)
    permits.end("other")
    await asyncio.wait_for(asyncio.gather(other, *calls), 1)
    assert permits.held == 1
    permits.end("parent")
    await asyncio.wait_for(permits.take("next"), 1)
