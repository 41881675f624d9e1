"""The approval card and its menu without a screen: what is shown, what each key does, which answer comes of it (APR-06, APR-08)."""

from dataclasses import dataclass, replace

from ..core.approval import ApprovalAnswer, ApprovalRequest
from ..policy.grants import Choice, choices
from ..policy.visible import visible


def card_lines(request: ApprovalRequest) -> tuple[str, ...]:
    """Who asks for what and why, in full, control characters escaped; then each choice with what exactly it means."""
    head = f"{request.agent} ({request.agent_id}) asks to run {request.tool}"
    asked = [line for text in (head, f"why: {request.reason}", request.card) for line in text.split("\n")]
    said = [f"[{choice.key}] {choice.label}: {choice.meaning}" for choice in choices(request)]
    return tuple(visible(line) for line in (*asked, *said))


@dataclass(frozen=True, slots=True)
class Menu:
    """The choices under the card. Refusal is marked at first, so that a stray Enter allows nothing."""

    request: ApprovalRequest
    at: int = -1

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Narrowest first, refusal last."""
        return choices(self.request)

    @property
    def marked(self) -> Choice:
        """The choice that Enter takes."""
        return self.choices[self.at]

    def press(self, key: str) -> "Menu | Choice":
        """``up`` and ``down`` move the mark, ``enter`` takes it, a choice's letter or number takes that one, ``esc`` refuses.
        Any other key changes nothing."""
        offered = self.choices
        match key:
            case "up" | "down":
                step = 1 if key == "down" else -1
                return replace(self, at=(self.at % len(offered) + step) % len(offered))
            case "enter":
                return self.marked
            case "esc":
                return offered[-1]
            case _:
                named = [c for n, c in enumerate(offered, 1) if key.lower() == c.key or key == str(n)]
                return named[0] if named else self


def answer_of(request: ApprovalRequest, choice: Choice, *, by: str, note: str = "") -> ApprovalAnswer:
    """The answer that the choice stands for, bound to exactly what was shown."""
    return ApprovalAnswer(decision=choice.decision, digest=request.digest, by=by, note=note)
