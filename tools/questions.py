"""Questions to the user: the bounds they keep, the free answer that is always on offer, and how answers read (TSK-01)."""

from ..core.chat import Question
from ..core.errors import ErrorKind, OpenDevError

OTHER = "Other"
_QUESTIONS, _HEADER, _FEWEST, _MOST = 4, 12, 2, 4


def checked(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """The questions with "Other" among the options. Raises ``OpenDevError`` (tool): one to four questions, two to four options or none."""
    if not 1 <= len(questions) <= _QUESTIONS:
        raise OpenDevError(
            ErrorKind.TOOL, f"One to {_QUESTIONS} questions can be asked, not {len(questions)}."
        )
    return tuple(_checked(question) for question in questions)


def _checked(question: Question) -> Question:
    offered = tuple(one for one in question.options if one.casefold() != OTHER.casefold())
    if len(question.header) > _HEADER:
        raise OpenDevError(
            ErrorKind.TOOL, f"The header `{question.header[:40]}` has more than {_HEADER} characters."
        )
    if not offered and not question.options:
        return question  # a plain question: any text answers it
    if not _FEWEST <= len(question.options) <= _MOST:
        message = f"A question has {_FEWEST} to {_MOST} options, not {len(question.options)}."
        raise OpenDevError(ErrorKind.TOOL, message)
    return question.model_copy(update={"options": (*offered, OTHER)})


def answered(questions: tuple[Question, ...], answers: tuple[str, ...]) -> str:
    """Each question with its answer; one without an answer says so."""
    given = (*answers, *("(no answer)" for _ in questions[len(answers) :]))
    pairs = zip(questions, given, strict=False)
    return "\n".join(f"{question.text}\n→ {answer}" for question, answer in pairs)
