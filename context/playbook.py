"""The ACE playbook: bullets with counters, their ranking, and changes in batches (MEM-06..10). Pure; the file is playbook_file."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..core.model import Frozen, Persisted
from ..policy.redact import redact

MAX_BULLETS = 200
MAX_CHARS = 300  # of one bullet: about 40 words
MAX_BYTES = 100_000  # of the file
MAX_OPERATIONS = 20  # of one batch
LESSONS = 10  # reflections, of whatever sessions, until one retrospective looks over them (MEM-14)
WEIGHTS = (0.5, 0.3, 0.2)  # effectiveness, recency, similarity (MEM-07)
HALF_LIFE_DAYS = 30.0
SELECTED = 8
SELECTED_CHARS = 2_000  # of all bullets put into one prompt
_DAY = 86_400.0
_MAX_COUNT = 5  # that one tag operation may add
_WORD = re.compile(r"[a-z0-9]{2,}")

Tag = Literal["helpful", "harmful", "neutral"]


class Bullet(Frozen):
    """One lesson. ``created`` in seconds since the epoch."""

    id: str
    text: str
    section: str = "general"
    helpful: int = 0
    harmful: int = 0
    neutral: int = 0
    created: float = 0.0

    @property
    def effectiveness(self) -> float:
        """0 to 1; 0.5 while nothing is known."""
        total = self.helpful + self.harmful + self.neutral
        return (self.helpful + 0.5 * self.neutral) / total if total else 0.5


class Playbook(Persisted):
    """The bullets of one project, in order of creation. ``serial`` numbers bullets and is never used twice.

    ``lessons`` are what the reflections since the last retrospective said, one line each, at most ``LESSONS``.
    """

    bullets: tuple[Bullet, ...] = ()
    serial: int = 0
    lessons: tuple[str, ...] = ()

    def find(self, bullet_id: str) -> Bullet | None:
        """The bullet with that id."""
        return next((bullet for bullet in self.bullets if bullet.id == bullet_id), None)


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


class Counts(Frozen):
    """How often a bullet helped, harmed or did neither."""

    helpful: int = Field(default=0, ge=0, le=_MAX_COUNT)
    harmful: int = Field(default=0, ge=0, le=_MAX_COUNT)
    neutral: int = Field(default=0, ge=0, le=_MAX_COUNT)


class Operation(Frozen):
    """One change, as the curator writes it."""

    type: Annotated[Literal["add", "update", "tag", "remove"], BeforeValidator(_lower)]
    section: str = "general"
    bullet_id: str = ""
    content: str = ""
    metadata: Counts = Counts()


class DeltaBatch(Frozen):
    """What the curator answers: all operations are applied, or none is (MEM-09)."""

    reasoning: str = ""
    operations: tuple[Operation, ...] = Field(default=(), max_length=MAX_OPERATIONS)


class BulletTag(Frozen):
    """What a bullet did, in the reflector's judgement."""

    id: str
    tag: Annotated[Tag, BeforeValidator(_lower)]


class Reflection(Frozen):
    """What the reflector answers: a diagnosis and tags, no change of structure (MEM-08, C-21)."""

    reasoning: str = ""
    error_identification: str = ""
    root_cause: str = ""
    correct_approach: str = ""
    bullet_tags: tuple[BulletTag, ...] = Field(default=(), max_length=MAX_BULLETS)


def tagged(playbook: Playbook, tags: Iterable[BulletTag]) -> Playbook:
    """``playbook`` with the reflector's tags counted; tags of bullets that are gone do not count."""
    operations = tuple(
        Operation(type="tag", bullet_id=tag.id, metadata=Counts.model_validate({tag.tag: 1})) for tag in tags
    )
    return apply(playbook, operations, 0.0)


def apply(playbook: Playbook, operations: Sequence[Operation], now: float) -> Playbook:
    """``playbook`` after the operations, in order, within the caps. An operation on a bullet that is gone has no effect."""
    bullets = {bullet.id: bullet for bullet in playbook.bullets}
    serial = playbook.serial
    for operation in operations:
        text = clean(operation.content)
        old = bullets.get(operation.bullet_id)
        if operation.type == "add":
            if text and all(bullet.text != text for bullet in bullets.values()):
                serial += 1
                new = Bullet(id=f"b{serial}", text=text, section=clean(operation.section)[:40], created=now)
                bullets[new.id] = new
        elif old is None:
            continue
        elif operation.type == "remove":
            del bullets[old.id]
        elif operation.type == "update":
            bullets[old.id] = old.model_copy(update={"text": text or old.text})
        else:
            bullets[old.id] = _counted(old, operation.metadata)
    return playbook.model_copy(update={"bullets": _capped(tuple(bullets.values())), "serial": serial})


def remembered(playbook: Playbook, task: str, reflection: Reflection) -> Playbook:
    """``playbook`` with one more lesson for the next retrospective; a reflection without a cause or a remedy leaves none."""
    said = (reflection.root_cause, reflection.correct_approach)
    if not any(said):
        return playbook
    line = clean(f"{task[:100]}: {'; '.join(part for part in said if part)}")
    return playbook.model_copy(update={"lessons": (*playbook.lessons, line)[-LESSONS:]})


def clean(text: str) -> str:
    """One bounded line without secrets that cannot pass for a reminder: a bullet stands in later prompts."""
    flat = " ".join(redact(text).split()).replace("system-reminder", "system reminder")
    return flat if len(flat) <= MAX_CHARS else f"{flat[: MAX_CHARS - 1]}…"


def rank(playbook: Playbook, query: str, now: float) -> tuple[tuple[float, Bullet], ...]:
    """All bullets with their scores, best first; newer ones first among equals."""
    wanted = vector(query)
    scored = [(_score(bullet, wanted, now), bullet) for bullet in playbook.bullets]
    return tuple(sorted(scored, key=lambda pair: (-pair[0], -pair[1].created, pair[1].id)))


def select(playbook: Playbook, query: str, now: float, count: int = SELECTED) -> tuple[Bullet, ...]:
    """The bullets worth showing for ``query``: at most ``count`` and 2,000 characters; harmful ones never."""
    chosen: list[Bullet] = []
    room = SELECTED_CHARS
    for _, bullet in rank(playbook, query, now):
        room -= len(bullet.text)
        if len(chosen) == count or room < 0:
            break
        if bullet.harmful <= bullet.helpful:
            chosen.append(bullet)
    return tuple(chosen)


@lru_cache(maxsize=1_024)
def vector(text: str) -> tuple[tuple[str, float], ...]:
    """The term vector of ``text``, length 1: the cached embedding where no embedding model is at hand [derived in MEM-07]."""
    counted = Counter(_stem(word) for word in _WORD.findall(text.lower()))
    length = math.sqrt(sum(count * count for count in counted.values()))
    return tuple((word, count / length) for word, count in sorted(counted.items()))


def cosine(one: Iterable[tuple[str, float]], other: Iterable[tuple[str, float]]) -> float:
    """0 to 1."""
    weights = dict(one)
    return sum(weight * weights.get(word, 0.0) for word, weight in other)


def recency(bullet: Bullet, now: float) -> float:
    """1 for a new bullet, one half after thirty days."""
    return 0.5 ** (max(0.0, now - bullet.created) / _DAY / HALF_LIFE_DAYS)


def _score(bullet: Bullet, wanted: tuple[tuple[str, float], ...], now: float) -> float:
    parts = (bullet.effectiveness, recency(bullet, now), cosine(vector(bullet.text), wanted))
    return sum(weight * part for weight, part in zip(WEIGHTS, parts, strict=True))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    return word


def _counted(bullet: Bullet, counts: Counts) -> Bullet:
    return bullet.model_copy(
        update={name: getattr(bullet, name) + getattr(counts, name) for name in Counts.model_fields}
    )


def _capped(bullets: tuple[Bullet, ...]) -> tuple[Bullet, ...]:
    """The bullets within the caps: the least effective go first, of these the oldest."""
    excess = len(bullets) - MAX_BULLETS
    if excess <= 0:
        return bullets
    worst = sorted(bullets, key=lambda bullet: (bullet.effectiveness, bullet.created))[:excess]
    gone = {bullet.id for bullet in worst}
    return tuple(bullet for bullet in bullets if bullet.id not in gone)
