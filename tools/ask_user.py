"""ask_user: one to four multiple-choice questions to the user, free text always allowed (T28, TSK-01, TSK-02)."""

from typing import Annotated

from pydantic import Field

from ..core.chat import Question
from ..core.errors import ErrorKind
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .questions import OTHER, answered


class Option(Frozen):
    """One answer on offer."""

    label: str = Field(min_length=1, max_length=80)
    description: str = Field(default="", max_length=300)


class Item(Frozen):
    """One question."""

    question: str = Field(min_length=1, max_length=1_000)
    header: str = Field(default="", max_length=12, description="A word or two.")
    options: Annotated[tuple[Option, ...], Field(min_length=2, max_length=4)]
    multiSelect: bool = False


class Args(Frozen):
    """One to four questions."""

    questions: Annotated[tuple[Item, ...], Field(min_length=1, max_length=4)]


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    """Waits for the answers or the time-out. ``data``: ``{"answers": [...]}``, in order."""
    questions = tuple(_question(item) for item in args.questions)
    answers = await ctx.ask.question(questions)
    if answers is None:
        return ToolResult.failure(
            "Nobody answered the questions.",
            "The user did not decide. Take the safest choice and say so, or finish and say what must be decided.",
            ErrorKind.UNANSWERED,
        )
    return ToolResult(
        ok=True,
        text=answered(questions, answers),
        summary=f"✓ The user answered {len(answers)} question{'s' if len(answers) > 1 else ''}",
        data={"answers": list(answers)},
    )


def _question(item: Item) -> Question:
    offered = [option for option in item.options if option.label.casefold() != OTHER.casefold()]
    return Question(
        text=item.question,
        header=item.header,
        options=(*(option.label for option in offered), OTHER),
        descriptions=(*(option.description for option in offered), "In your own words."),
        multiple=item.multiSelect,
    )


TOOL = Tool(
    name="ask_user",
    category="User input",
    args=Args,
    run=_run,
    effects=frozenset({Effect.ASK}),
)
