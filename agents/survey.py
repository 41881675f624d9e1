"""The Ask-User agent: shows the questions and returns the answers, without any model call (SUB-14)."""

from pydantic import TypeAdapter, ValidationError

from ..core.agent import AgentStatus
from ..core.chat import Question
from ..core.errors import ErrorInfo, ErrorKind
from ..core.ports import Asker
from .iteration import End

MAX_QUESTIONS = 4
_QUESTIONS: TypeAdapter[tuple[Question, ...]] = TypeAdapter(tuple[Question, ...])


async def survey(prompt: str, ask: Asker) -> End:
    """Ask what ``prompt`` says: a JSON list of questions, or one plain question."""
    questions = _parse(prompt)
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        message = f"Ask-User takes one to {MAX_QUESTIONS} questions, not {len(questions)}."
        return End(AgentStatus.FAILED, error=ErrorInfo(kind=ErrorKind.TOOL, message=message))
    answers = await ask.question(questions)
    if answers is None:
        error = ErrorInfo(kind=ErrorKind.UNANSWERED, message="Nobody answered the questions.")
        return End(AgentStatus.UNANSWERED, error=error)
    pairs = zip(questions, answers, strict=False)
    return End(AgentStatus.DONE, "\n".join(f"{question.text}\n→ {answer}" for question, answer in pairs))


def _parse(prompt: str) -> tuple[Question, ...]:
    try:
        return _QUESTIONS.validate_json(prompt)
    except ValidationError:
        return (Question(text=prompt.strip()),) if prompt.strip() else ()
