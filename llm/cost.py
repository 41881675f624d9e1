"""What a call costs: prices per million tokens, counts as providers report them, and estimates where they do not (MOD-07)."""

from pydantic import Field

from ..core.chat import IMAGE_TOKENS, ModelRequest, Usage, UserMessage
from ..core.model import Frozen

CHARS_PER_TOKEN = 4  # the usual rule of thumb; only where nothing is reported


class Price(Frozen):
    """US dollars per million tokens. ``cached`` is for tokens read from the provider's cache, ``written`` for those put in.

    ``assumed``: nobody knows the price, and this one stands in, so that caps in dollars hold for every model.
    """

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    written: float | None = Field(default=None, ge=0)
    assumed: bool = False

    def of(self, counts: "Counts") -> float:
        """US dollars of ``counts``."""
        plain = max(0, counts.input - counts.cached - counts.written)
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        total = plain * self.input + counts.cached * cached + counts.written * written
        return (total + counts.output * self.output) / 1_000_000


ASSUMED = Price(input=3.0, output=15.0, assumed=True)  # where the settings say nothing else


class Counts(Frozen):
    """Tokens of one call. ``input`` holds all prompt tokens, ``cached`` and ``written`` (to the cache) among them."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    estimated: bool = False

    def usage(self, price: Price) -> Usage:
        """As ``Usage``; with an assumed price it counts as estimated."""
        return Usage(
            input=self.input,
            output=self.output,
            cached=self.cached,
            cost_usd=price.of(self),
            estimated=self.estimated or price.assumed,
        )


def tokens_of(text: str) -> int:
    """An estimate, at least 1 for any text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def prompt_tokens(request: ModelRequest) -> int:
    """An estimate of the prompt: messages and tool schemas as JSON, a quarter of the characters; pictures by number."""
    size = sum(len(message.model_dump_json(exclude={"images"})) for message in request.messages)
    size += sum(len(tool.model_dump_json()) for tool in request.tools)
    images = sum(len(message.images) for message in request.messages if isinstance(message, UserMessage))
    return -(-size // CHARS_PER_TOKEN) + images * IMAGE_TOKENS


def settle_counts(reported: Counts | None, request: ModelRequest, written: str) -> Counts:
    """What was reported, with estimates for what is missing or zero (M27)."""
    counts = reported or Counts()
    missing_input, missing_output = counts.input == 0, counts.output == 0 and bool(written)
    return counts.model_copy(
        update={
            "input": prompt_tokens(request) if missing_input else counts.input,
            "output": tokens_of(written) if missing_output else counts.output,
            "estimated": counts.estimated or missing_input or missing_output,
        }
    )
