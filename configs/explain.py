"""Says which layer set a key, and what the layers below it said."""

from collections.abc import Mapping

from ..core.errors import ErrorKind, OpenDevError
from .layers import Origin, near, variable_of
from .schema import SPELLINGS, leaf_keys


def known_key(key: str) -> str:
    """The setting that a dotted key, or a flat name of Catalogue F, stands for. Raises ``OpenDevError`` (usage)."""
    meant = SPELLINGS.get(key, key)
    if meant in leaf_keys():
        return meant
    inside = [name for name in leaf_keys() if name.startswith(f"{key}.")]
    names = inside or near(key)
    hint = f"Did you mean {', '.join(names)}?" if names else "`opendev config show` lists the settings."
    raise OpenDevError(ErrorKind.USAGE, f"There is no setting `{key}`.", hint)


def explain(layers: Mapping[str, tuple[Origin, ...]], key: str) -> dict[str, object]:
    """The value of a dotted key, the layer that set it, and every layer's value. Raises ``OpenDevError`` (usage)."""
    key = known_key(key)
    origins = layers.get(key, ())
    return {
        "key": key,
        "value": origins[-1].value if origins else None,
        "set_by": origins[-1].layer if origins else "nothing",
        "variable": variable_of(key),
        "layers": [
            {"layer": origin.layer, "place": origin.place, "line": origin.line, "value": origin.value}
            for origin in origins
        ],
    }
