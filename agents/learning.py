"""Reflector, curator, retrospective: what work teaches the project's playbook (MEM-08, MEM-09, MEM-11, MEM-14)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from ..context.composer import standalone
from ..context.playbook import (
    Bullet,
    DeltaBatch,
    Playbook,
    Reflection,
    apply,
    rank,
    remembered,
    tagged,
)
from ..context.playbook_file import PlaybookFile
from ..context.reminders import reminder
from ..context.summaries import condensed, told
from ..core.chat import AssistantMessage, Message, MessageClass, SystemMessage, UserMessage
from ..core.model import Frozen

RETRIES = 2  # of an answer that is no JSON
_STEPS_CHARS = 24_000
_STEP_CHARS = 1_200
_CURATED = 60  # bullets the curator is shown, best matches first
T = TypeVar("T", bound=Frozen)
Ask = Callable[
    [tuple[Message, ...]], Awaitable[str]
]  # the answer to a conversation; empty when there is none


async def reflect(
    ask: Ask, task: str, steps: Sequence[Message], shown: Sequence[Bullet]
) -> Reflection | None:
    """What the reflector found in the newest steps; None when the model gave nothing readable."""
    bullets = "\n".join(f"- [{bullet.id}] {bullet.text}" for bullet in shown) or "(none)"
    text = "\n\n".join(told(message)[:_STEP_CHARS] for message in condensed(steps))
    content = f"<task>\n{task[:4_000]}\n</task>\n\n<bullets>\n{bullets}\n</bullets>\n\n<steps>\n{text[-_STEPS_CHARS:]}\n</steps>"
    return await _structured(ask, "reflector", content, Reflection)


async def curate(ask: Ask, playbook: Playbook, reflection: Reflection, now: float) -> DeltaBatch | None:
    """The changes that the curator makes of a reflection; None when the model gave nothing readable."""
    bullets = _listed(playbook, f"{reflection.root_cause} {reflection.correct_approach}", now)
    said = reflection.model_dump_json(exclude={"bullet_tags"})
    content = f"<playbook>\n{bullets}\n</playbook>\n\n<reflection>\n{said}\n</reflection>"
    return await _structured(ask, "curator", content, DeltaBatch)


async def look_over(ask: Ask, playbook: Playbook, now: float) -> DeltaBatch | None:
    """The changes that the lessons of many sessions suggest (MEM-14); None when the model gave nothing readable."""
    lessons = "\n".join(f"- {line}" for line in playbook.lessons)
    content = f"<playbook>\n{_listed(playbook, ' '.join(playbook.lessons), now)}\n</playbook>\n\n<lessons>\n{lessons}\n</lessons>"
    return await _structured(ask, "retrospective", content, DeltaBatch, retry="curator")


def learn(
    file: PlaybookFile, task: str, reflection: Reflection, batch: DeltaBatch | None, now: float
) -> Playbook:
    """Count the tags and apply the batch, in one write. Blocking; raises ``OpenDevError`` and then nothing is changed."""

    def step(playbook: Playbook) -> Playbook:
        changed = apply(tagged(playbook, reflection.bullet_tags), batch.operations if batch else (), now)
        return remembered(changed, task, reflection)

    return file.change(step)


def looked_over(
    file: PlaybookFile, lessons: tuple[str, ...], batch: DeltaBatch | None, now: float
) -> Playbook:
    """Apply a retrospective; its lessons are used up, also when it found nothing. Blocking; raises like ``learn``."""

    def step(playbook: Playbook) -> Playbook:
        changed = apply(playbook, batch.operations if batch else (), now)
        left = tuple(line for line in changed.lessons if line not in lessons)
        return changed.model_copy(update={"lessons": left})

    return file.change(step)


def _listed(playbook: Playbook, query: str, now: float) -> str:
    return (
        "\n".join(
            f"- [{b.id}] ({b.section}; {b.helpful} helpful, {b.harmful} harmful, {b.neutral} neutral) {b.text}"
            for _, b in rank(playbook, query, now)[:_CURATED]
        )
        or "(empty)"
    )


async def _structured(ask: Ask, name: str, content: str, kind: type[T], retry: str = "") -> T | None:
    messages: tuple[Message, ...] = (
        SystemMessage(stable=standalone(name)),
        UserMessage(content=content, msg_class=MessageClass.INTERNAL),
    )
    for _ in range(1 + RETRIES):
        answer = await ask(messages)
        if not answer.strip():
            return None
        try:
            return kind.model_validate_json(_object_in(answer))
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
        again = reminder(f"{retry or name}_json_retry", MessageClass.INTERNAL, problem=problem)
        messages = (*messages[:2], AssistantMessage(content=answer), again)
    return None


def _object_in(answer: str) -> str:
    """The JSON object in an answer that may have words or a fence around it."""
    first, last = answer.find("{"), answer.rfind("}")
    return answer[first : last + 1] if 0 <= first < last else answer
