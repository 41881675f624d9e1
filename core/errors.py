"""Errors as data: a kind, a sentence and what to do next. They cross processes as ``ErrorInfo``, never as exceptions."""

from enum import StrEnum

from .exits import Exit
from .model import Frozen


class ErrorKind(StrEnum):
    """The closed list of what can go wrong."""

    USAGE = "usage"  # command line, ticket file: the user's words are off
    CONFIG = "config"
    MODEL = "model"  # the provider refused or answered nonsense
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    CONTEXT = "context"  # the request does not fit the model's window
    BUDGET = "budget"
    GIT = "git"
    CONFLICT = "conflict"
    VERIFY = "verify"
    SETUP = "setup"
    SCOPE = "scope"  # a write outside of what the task may touch
    DENIED = "denied"  # a rule, a layer or a person said no
    UNANSWERED = "unanswered"  # it needed an approval or an answer and nobody gave one
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    INFRA = "infra"  # Ray, disk, a lost process
    TOOL = "tool"  # an ordinary failure of a tool: bad arguments, no match, exit code
    NOT_FOUND = "not_found"
    INTERNAL = "internal"  # a defect of OpenDev


class ErrorInfo(Frozen):
    """What happened (a sentence that names the file or command) and what to do next."""

    kind: ErrorKind
    message: str
    hint: str = ""

    def sentence(self) -> str:
        """Message and hint as one text."""
        return f"{self.message} {self.hint}".strip()


class OpenDevError(Exception):
    """The one exception of the project; all arguments are positional, so that it survives pickling."""

    def __init__(self, kind: ErrorKind, message: str, hint: str = "") -> None:
        super().__init__(kind, message, hint)
        self.info = ErrorInfo(kind=kind, message=message, hint=hint)

    def __str__(self) -> str:
        return self.info.sentence()


_EXITS: dict[ErrorKind, Exit] = {
    ErrorKind.USAGE: Exit.USAGE,
    ErrorKind.CONFIG: Exit.USAGE,
    ErrorKind.VERIFY: Exit.VERIFY,
    ErrorKind.CONFLICT: Exit.CONFLICT,
    ErrorKind.BUDGET: Exit.BUDGET,
    ErrorKind.MODEL: Exit.INFRA,
    ErrorKind.RATE_LIMIT: Exit.INFRA,
    ErrorKind.AUTH: Exit.INFRA,
    ErrorKind.GIT: Exit.INFRA,
    ErrorKind.INFRA: Exit.INFRA,
    ErrorKind.UNANSWERED: Exit.UNANSWERED,
    ErrorKind.CANCELLED: Exit.INTERRUPTED,
}


def exit_of(kind: ErrorKind) -> Exit:
    """The exit code a run ends with when this error ended it."""
    return _EXITS.get(kind, Exit.FAILED)
