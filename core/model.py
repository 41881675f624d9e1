"""The two base models of all data: frozen values, and frozen values that are written to disk."""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

JsonObject = dict[str, Any]


def well_formed(text: str) -> str:
    """``text`` as UTF-8 can carry it: halves of a character are joined, a lone half becomes U+FFFD (D03)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def well_formed_json(value: JsonObject) -> JsonObject:
    """The same for every text in a JSON object, however deep it is nested."""
    try:
        whole = json.dumps(value, ensure_ascii=False)
        return value if well_formed(whole) == whole else json.loads(well_formed(whole))
    except (TypeError, ValueError, RecursionError):
        return value  # no JSON: whoever writes it says so


Text = Annotated[str, AfterValidator(well_formed)]


class Frozen(BaseModel):
    """An immutable value; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Persisted(Frozen):
    """A value that outlives the process; it carries its schema version as the key ``schema``."""

    schema_version: Literal[1] = Field(default=1, alias="schema")

    def to_json(self) -> str:
        """One line of JSON, keys by alias. Half a character (a lone surrogate) becomes U+FFFD: no text can stop a write (D03)."""
        return dump_line(self)


def dump_line(value: BaseModel) -> str:
    """``value`` as one line of JSON, keys by alias, whatever text it holds."""
    try:
        return value.model_dump_json(by_alias=True)
    except PydanticSerializationError:
        whole = well_formed_json(value.model_dump(mode="json", by_alias=True))
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
