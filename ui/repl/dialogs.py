"""What waits for the user, in order of arrival, and what each key does to it: approvals, plans, questions. Pure; no screen."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from ...core.approval import ApprovalRequest
from ...core.chat import Question, canonical
from ...core.events import ApprovalAnswered, ApprovalAsked, Event, QuestionAnswered, QuestionAsked
from ...core.model import JsonObject
from ...core.ops import AnswerApproval, AnswerQuestion
from ...policy.grants import PLAN, Choice
from ...policy.visible import visible
from ...tools.questions import OTHER
from ..approval import Menu, answer_of, card_lines

WAITING_MAX = 200  # each is an agent that is blocked
BY = "terminal"
Answer = AnswerApproval | AnswerQuestion


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of text is wanted: the label before it, and what stands in it at first."""

    label: str
    start: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a menu: its key, its text, what it means; ``on`` when it is ticked (None: it cannot be)."""

    key: str
    label: str
    meaning: str
    on: bool | None = None


@dataclass(frozen=True, slots=True)
class ApprovalDialog:
    """One call that waits. A plan that is sent back takes a note; a call that must be changed takes its new form."""

    asked: ApprovalAsked
    menu: Menu
    typing: Choice | None = None
    problem: str = ""

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def request(self) -> ApprovalRequest:
        """What is asked."""
        return self.asked.request

    @property
    def title(self) -> str:
        """One line: who wants what."""
        return self.card[0]

    @property
    def card(self) -> tuple[str, ...]:
        """Everything that is asked for, escaped, without the choices. A plan is printed on its own, as markdown."""
        if self.request.tool == PLAN:
            return ("Approve the plan above?",)
        return card_lines(self.request)[: -len(self.menu.choices)]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The choices, each with what exactly it means."""
        return tuple(Row(choice.key, choice.label, visible(choice.meaning)) for choice in self.menu.choices)

    @property
    def at(self) -> int:
        """The marked row."""
        return self.menu.at % len(self.menu.choices)

    @property
    def entry(self) -> Entry | None:
        """The line to type, once a choice needs one."""
        if self.typing is None:
            return None
        if self.typing.decision == "deny":
            return Entry("what should change")
        command = self.request.arguments.get("command")
        return Entry("changed to", command if isinstance(command, str) else canonical(self.request.arguments))

    def press(self, key: str) -> "ApprovalDialog | Answer":
        """One key of the menu."""
        after = self.menu.press(key)
        if isinstance(after, Menu):
            return replace(self, menu=after, problem="")
        if (after.decision == "deny" and self.request.tool == PLAN and key != "esc") or (
            after.decision != "deny" and self.request.must_edit
        ):
            return replace(self, typing=after, problem="")
        return self._answer(after)

    def write(self, text: str) -> "ApprovalDialog | Answer":
        """The line that was typed."""
        choice = self.typing
        if choice is None or choice.decision == "deny":
            return self._answer(choice or self.menu.choices[-1], note=text.strip())
        changed = self._changed(text)
        if changed is None or changed == self.request.arguments:
            why = "this is no JSON object" if changed is None else "nothing is changed yet"
            return replace(self, problem=why)
        return self._answer(choice, arguments=changed)

    def back(self) -> "ApprovalDialog | Answer":
        """Esc: from the line to the menu, from the menu to a refusal."""
        return self.press("esc") if self.typing is None else replace(self, typing=None, problem="")

    def _changed(self, text: str) -> JsonObject | None:
        if isinstance(self.request.arguments.get("command"), str):
            return {**self.request.arguments, "command": text}
        return _object(text)

    def _answer(self, choice: Choice, *, note: str = "", arguments: JsonObject | None = None) -> Answer:
        answer = answer_of(self.request, choice, by=BY, note=note)
        return AnswerApproval(request_id=self.id, answer=answer.model_copy(update={"arguments": arguments}))


@dataclass(frozen=True, slots=True)
class QuestionDialog:
    """One to four questions, asked one after the other; the answers so far."""

    asked: QuestionAsked
    who: str
    given: tuple[str, ...] = ()
    at: int = 0
    ticked: frozenset[int] = frozenset()
    typing: bool = False
    problem: str = ""

    @property
    def id(self) -> str:
        return self.asked.request_id

    @property
    def question(self) -> Question:
        """The one that is asked now."""
        return self.asked.questions[len(self.given)]

    @property
    def title(self) -> str:
        """Who asks, and which of how many."""
        several = len(self.asked.questions)
        count = f" ({len(self.given) + 1} of {several})" if several > 1 else ""
        return visible(f"{self.who or 'The agent'} asks{count}")

    @property
    def card(self) -> tuple[str, ...]:
        """The question, escaped."""
        head = f"{self.question.header}: " if self.question.header else ""
        return (self.title, *(visible(line) for line in f"{head}{self.question.text}".split("\n")))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The options; none for free text."""
        meanings = (*self.question.descriptions, *("" for _ in self.question.options))
        return tuple(
            Row(str(n), visible(label), visible(meaning), (n - 1 in self.ticked) if self.question.multiple else None)
            for n, (label, meaning) in enumerate(zip(self.question.options, meanings, strict=False), 1)
        )  # fmt: skip

    @property
    def entry(self) -> Entry | None:
        """Free text, where there are no options or "Other" was taken."""
        return Entry("answer") if self.typing or not self.question.options else None

    def press(self, key: str) -> "QuestionDialog | Answer":
        """Arrows move, a digit takes, Enter takes; with several answers a digit or space ticks and Enter ends."""
        count = len(self.question.options)
        if key in ("up", "down"):
            return replace(self, at=(self.at + (1 if key == "down" else -1)) % count, problem="")
        if key == "esc":
            return AnswerQuestion(request_id=self.id, texts=self.given)
        if key.isdecimal() and 1 <= int(key) <= count:
            return self._tick(int(key) - 1) if self.question.multiple else self._take(int(key) - 1)
        if key == " " and self.question.multiple:
            return self._tick(self.at)
        if key == "enter":
            return self._several() if self.question.multiple else self._take(self.at)
        return self

    def write(self, text: str) -> "QuestionDialog | Answer":
        """The line that was typed."""
        if not text.strip():
            return replace(self, problem="type an answer, or press Esc")
        picked = self._labels() if self.question.multiple else ()
        return self._next(", ".join((*picked, text.strip())))

    def back(self) -> "QuestionDialog | Answer":
        """Esc: from the line to the options, from the options to no answer."""
        if self.typing and self.question.options:
            return replace(self, typing=False, problem="")
        return self.press("esc")

    def _tick(self, index: int) -> "QuestionDialog":
        return replace(self, at=index, ticked=self.ticked ^ {index}, problem="")

    def _take(self, index: int) -> "QuestionDialog | Answer":
        label = self.question.options[index]
        return replace(self, at=index, typing=True) if label == OTHER else self._next(label)

    def _several(self) -> "QuestionDialog | Answer":
        if not self.ticked:
            return replace(self, problem="tick with space or a digit, or press Esc")
        if any(self.question.options[index] == OTHER for index in self.ticked):
            return replace(self, typing=True)
        return self._next(", ".join(self._labels()))

    def _labels(self) -> tuple[str, ...]:
        chosen = (self.question.options[index] for index in sorted(self.ticked))
        return tuple(label for label in chosen if label != OTHER)

    def _next(self, answer: str) -> "QuestionDialog | Answer":
        given = (*self.given, answer)
        if len(given) == len(self.asked.questions):
            return AnswerQuestion(request_id=self.id, texts=given)
        return QuestionDialog(self.asked, self.who, given)


Dialog = ApprovalDialog | QuestionDialog


@dataclass(slots=True)
class Waiting:
    """All that waits, oldest first. What was answered, here or elsewhere, is gone: a second answer finds nothing."""

    items: list[Dialog] = field(default_factory=list[Dialog])
    turned_away: int = 0  # more than ``WAITING_MAX``: they end unanswered

    @property
    def first(self) -> Dialog | None:
        """The one on the screen."""
        return self.items[0] if self.items else None

    def take(self, event: Event, name_of: Callable[[str], str]) -> bool:
        """Note an event; True when the first one changed. ``name_of`` names an agent by its id."""
        before = self.first
        match event:
            case ApprovalAsked():
                self._put(ApprovalDialog(event, Menu(event.request)))
            case QuestionAsked():
                self._put(QuestionDialog(event, name_of(event.agent)))
            case ApprovalAnswered() | QuestionAnswered():
                self.drop(event.request_id)
            case _:
                pass
        return self.first is not before

    def change(self, dialog: Dialog) -> None:
        """A key moved something in the dialog on the screen."""
        self.items = [dialog if one.id == dialog.id else one for one in self.items]

    def drop(self, id: str) -> None:
        """It needs no answer any more."""
        self.items = [one for one in self.items if one.id != id]

    def _put(self, dialog: Dialog) -> None:
        if any(one.id == dialog.id for one in self.items):
            return  # shown again by the hub
        if len(self.items) >= WAITING_MAX:
            self.turned_away += 1
            return
        self.items.append(dialog)


def _object(text: str) -> JsonObject | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None
