"""The conversation with a model: messages, tool calls, usage, request and reply. Our own types, no provider's."""

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from .errors import ErrorInfo
from .model import Frozen, JsonObject, Text, well_formed_json


class Usage(Frozen):
    """Tokens and US dollars of one call or of a sum of calls. ``estimated`` when the provider did not report."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost_usd: float = 0.0
    estimated: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cost_usd=self.cost_usd + other.cost_usd,
            estimated=self.estimated or other.estimated,
        )


class ToolCall(Frozen):
    """One call the model asks for. ``problem`` is set when its arguments could not be read; such a call never runs."""

    id: str
    name: str
    arguments: Annotated[JsonObject, AfterValidator(well_formed_json)] = Field(default_factory=dict)
    problem: str = ""


class MessageClass(StrEnum):
    """Why a user-role message exists (REM-02); never sent to the provider."""

    USER = "user"
    DIRECTIVE = "directive"
    NUDGE = "nudge"
    INTERNAL = "internal"


class SystemMessage(Frozen):
    """The composed prompt. ``stable`` is the cacheable part, byte-identical across turns; ``dynamic`` the rest."""

    role: Literal["system"] = "system"
    stable: Text
    dynamic: Text = ""


IMAGE_TOKENS = 1_600  # estimate of a picture, whatever its bytes
ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class ImagePart(Frozen):
    """A picture in a message; ``data`` is base64."""

    media_type: ImageType
    data: str = Field(repr=False)


class UserMessage(Frozen):
    """What the user, or the harness in the user's role, says; ``images`` go to models with vision only."""

    role: Literal["user"] = "user"
    content: Text
    msg_class: MessageClass = MessageClass.USER
    images: tuple[ImagePart, ...] = ()


class AssistantMessage(Frozen):
    """What the model answered. ``thinking`` holds provider blocks that are sent back byte-identical or dropped whole."""

    role: Literal["assistant"] = "assistant"
    content: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[JsonObject, ...] = ()


class ToolMessage(Frozen):
    """The one result of one call, and its short form for condensed views (TOR-07)."""

    role: Literal["tool"] = "tool"
    call_id: str
    name: str
    content: Text
    is_error: bool = False
    summary: Text = ""


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]
MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


class ToolSchema(Frozen):
    """What a model is told of one tool; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: JsonObject


class Role(StrEnum):
    """The five model roles (MOD-01)."""

    ACTION = "action"
    THINKING = "thinking"
    CRITIQUE = "critique"
    VISION = "vision"
    COMPACT = "compact"


class ThinkingLevel(StrEnum):
    """How much an agent thinks, in a call of its own, before it acts (LOOP-06)."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"  # the trace is criticised and written again


class ModelRequest(Frozen):
    """One call of a model. ``scopes`` are the budgets it is charged to (a task's and the run's)."""

    id: str
    agent_id: str
    model: str  # provider/NAME, for example openai/gpt-5 or offline/recipes
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    role: Role = Role.ACTION
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = False
    scopes: tuple[str, ...] = ()


class FinishReason(StrEnum):
    """Why the model stopped. ``LENGTH`` means the answer is cut: none of its tool calls may run."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    FILTERED = "filtered"


class ModelReply(Frozen):
    """The answer to one request, with what it cost and how often it was tried."""

    message: AssistantMessage
    finish: FinishReason
    usage: Usage
    model: str
    latency_s: float = 0.0
    tries: int = 1


class ModelFailed(Frozen):
    """The request was given up; ``usage`` is what the failed tries cost."""

    error: ErrorInfo
    usage: Usage = Usage()
    tries: int = 1


class Question(Frozen):
    """One structured question to the user: two to four options and "Other", or free text (TSK-01). Any text may answer it."""

    text: str
    header: str = ""
    options: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()  # of the options, in their order
    multiple: bool = False


def canonical(value: Any) -> str:
    """JSON of ``value`` with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
