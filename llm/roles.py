"""Which model serves which role: the fallbacks of MOD-02."""

from collections.abc import Callable, Mapping

from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError

_CHAIN: dict[Role, tuple[Role, ...]] = {
    Role.ACTION: (Role.ACTION,),
    Role.THINKING: (Role.THINKING, Role.ACTION),
    Role.CRITIQUE: (Role.CRITIQUE, Role.THINKING, Role.ACTION),
    Role.VISION: (Role.VISION, Role.ACTION),
    Role.COMPACT: (Role.COMPACT, Role.ACTION),
}


def model_for(role: Role, models: Mapping[Role, str], has_vision: Callable[[str], bool]) -> str:
    """The model of ``role`` as provider/NAME. Raises ``OpenDevError`` (config) when there is none, or none that sees."""
    chosen = next(
        ((step, models[step]) for step in _CHAIN[role] if models.get(step)),
        None,
    )
    if chosen is None:
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"No model is configured for the role {role.value}.",
            "Set OPENDEV_MODEL=provider/NAME, or pass --model provider/NAME.",
        )
    step, model = chosen
    if role is Role.VISION and step is Role.ACTION and not has_vision(model):
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"No vision model: {model}, the action model, cannot see images.",
            "Configure a model for the role vision.",
        )
    return model
