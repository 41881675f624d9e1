"""The two base models of all data: frozen values, and frozen values that are written to disk."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

JsonObject = dict[str, Any]


class Frozen(BaseModel):
    """An immutable value; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Persisted(Frozen):
    """A value that outlives the process; it carries its schema version as the key ``schema``."""

    schema_version: Literal[1] = Field(default=1, alias="schema")

    def to_json(self) -> str:
        """One line of JSON, keys by alias."""
        return self.model_dump_json(by_alias=True)
