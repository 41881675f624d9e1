"""Says which layer set a key, and what the layers below it said."""

from ..core.errors import ErrorKind, OpenDevError
from .load import Loaded, variable_of
from .schema import leaf_keys


def explain(loaded: Loaded, key: str) -> dict[str, object]:
    """The value of a dotted key, the layer that set it, and every layer's value. Raises ``OpenDevError`` (usage)."""
    if key not in leaf_keys():
        near = [known for known in leaf_keys() if key.rsplit(".", 1)[-1] in known]
        hint = f"Did you mean {', '.join(near)}?" if near else "`opendev config show` lists the settings."
        raise OpenDevError(ErrorKind.USAGE, f"There is no setting `{key}`.", hint)
    origins = loaded.origins.get(key, ())
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
