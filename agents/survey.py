"""The Ask-User agent: shows the questions and returns the answers, without any model call (SUB-14)."""

from pydantic import TypeAdapter, ValidationError

from ..core.agent import AgentStatus
from ..core.chat import Question
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.ports import Asker
from ..tools.questions import answered, checked
from .iteration import End

_QUESTIONS: TypeAdapter[tuple[Question, ...]] = TypeAdapter(tuple[Question, ...])


async def survey(prompt: str, ask: Asker) -> End:
    """Ask what ``prompt`` says: a JSON list of questions, or one plain question."""
    try:
        questions = checked(_parse(prompt))
    except OpenDevError as error:
        return End(AgentStatus.FAILED, error=error.info)
    answers = await ask.question(questions)
    if answers is None:
        error = ErrorInfo(kind=ErrorKind.UNANSWERED, message="Nobody answered the questions.")
        return End(AgentStatus.UNANSWERED, error=error)
    return End(AgentStatus.DONE, answered(questions, answers))


def _parse(prompt: str) -> tuple[Question, ...]:
    try:
        return _QUESTIONS.validate_json(prompt)
    except ValidationError:
        return (Question(text=prompt.strip()),) if prompt.strip() else ()
