"""Hypothesis strategies for the project's data models, from their field types."""

import types
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from opendev.core.model import Frozen
from pydantic import ValidationError

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PLAIN: dict[Any, SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(0, 2**53),
    float: st.floats(0, 1e9, allow_nan=False),
    bool: st.booleans(),
    type(None): st.none(),
    Any: JSON,
    object: JSON,
}


@cache
def values_of(model: type[Frozen]) -> SearchStrategy[Any]:
    """Valid values of a model; what its validators refuse is left out."""
    fields = {
        name: (_of(field.annotation) if field.is_required() else _of(field.annotation) | st.just(...))
        for name, field in model.model_fields.items()
        if name != "schema_version"
    }

    def make(given: dict[str, Any]) -> Any:
        try:
            return model(**{name: value for name, value in given.items() if value is not ...})
        except ValidationError:
            return None

    return st.fixed_dictionaries(fields).map(make).filter(lambda value: value is not None)


def _of(kind: Any) -> SearchStrategy[Any]:
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if isinstance(kind, type) and issubclass(kind, Frozen):
        return st.deferred(lambda: values_of(kind))
    return _composed(kind)


def _composed(kind: Any) -> SearchStrategy[Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _of(inner[0])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of([_of(one) for one in inner])
    if origin is tuple:
        return st.lists(_of(inner[0]), max_size=2).map(tuple)
    assert origin is dict, f"no strategy for {kind}"
    return st.dictionaries(_of(inner[0]), _of(inner[1]), max_size=2)
