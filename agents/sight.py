"""An agent's eyes: one picture, one question, one call of the vision model, booked like every other call (VIS-02, MOD-02)."""

from dataclasses import dataclass

from ..core.chat import ImagePart, ModelFailed, ModelReply
from ..core.errors import ErrorInfo, ErrorKind
from .calling import ask_about_image
from .iteration import IterationContext


@dataclass(slots=True)
class Sight:
    """Implements the port ``Vision``. ``ctx`` is set once the run's state is put together, before any tool runs."""

    ctx: IterationContext | None = None

    async def __call__(self, question: str, image: ImagePart, /) -> ModelReply | ModelFailed:
        """See ``ports.Vision``. An interrupt is a failure of kind cancelled."""
        reply = None if self.ctx is None else await ask_about_image(self.ctx, question, image)
        if reply is not None:
            return reply
        return ModelFailed(error=ErrorInfo(kind=ErrorKind.CANCELLED, message="It was interrupted."))
