"""The rules of permissions.json: which calls pass, are refused or go to a person (APR-02, APR-03, APR-05)."""

from enum import StrEnum
from typing import Literal, cast

from pydantic import Field, model_validator

from .model import Frozen, JsonObject

COMMANDS = "run_command"
MAX_RULES = 1_000


class RuleType(StrEnum):
    """How ``pattern`` is compared: a regular expression, the exact words, the first words, a regular expression that denies."""

    PATTERN = "pattern"
    COMMAND = "command"
    PREFIX = "prefix"
    DANGER = "danger"


class Action(StrEnum):
    """What a rule decides."""

    APPROVE = "auto_approve"
    DENY = "auto_deny"
    ASK = "require_approval"
    EDIT = "require_edit"


class Rule(Frozen):
    """One rule. The highest ``priority`` that matches decides; a ``danger`` rule denies whatever its priority is.

    ``tool``: the tool whose calls it is about, ``*`` = every tool with paths. ``project``: it holds in this folder only.
    """

    id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=2_000)
    rule_type: RuleType
    pattern: str = Field(min_length=1, max_length=20_000)
    action: Action
    enabled: bool = True
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    tool: str = Field(default=COMMANDS, min_length=1, max_length=200)
    project: str = ""
    created_at: str | None = None
    modified_at: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _danger_denies(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        given = cast("JsonObject", value)
        unsaid = given.get("rule_type") == RuleType.DANGER and "action" not in given
        return {**given, "action": Action.DENY} if unsaid else given

    @model_validator(mode="after")
    def _makes_sense(self) -> "Rule":
        if not self.pattern.strip():
            raise ValueError("`pattern` is blank")
        if self.rule_type is RuleType.DANGER and self.action is not Action.DENY:
            raise ValueError("a danger rule always denies: its `action` is auto_deny")
        if self.rule_type in (RuleType.PATTERN, RuleType.DANGER):
            import regex  # 8 ms: most have no rules

            try:
                regex.compile(self.pattern)
            except regex.error as error:
                raise ValueError(f"`pattern` is no regular expression: {error}") from error
        return self

    @property
    def label(self) -> str:
        """How a person recognises it."""
        return self.name or self.id or f"{self.rule_type.value} {self.pattern}"[:200]

    @property
    def key(self) -> tuple[str, str, str]:
        """Two rules with the same key are about the same calls."""
        return (self.tool, self.rule_type.value, self.pattern)


class RuleFile(Frozen):
    """permissions.json as a whole."""

    version: Literal[1] = 1
    rules: tuple[Rule, ...] = Field(default=(), max_length=MAX_RULES)


def rule_schema() -> JsonObject:
    """The JSON schema of permissions.json."""
    return RuleFile.model_json_schema()


class Permissions(Frozen):
    """The rules of one project. ``rules`` decide, by priority; ``narrowing`` are those of a project that the user has not
    agreed to: they can refuse and ask, and never let anything pass."""

    rules: tuple[Rule, ...] = ()
    narrowing: tuple[Rule, ...] = ()

    def plus(self, rules: tuple[Rule, ...]) -> "Permissions":
        """These and ``rules``, which come last among equals."""
        return Permissions(rules=by_priority((*self.rules, *rules)), narrowing=self.narrowing)


def by_priority(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The enabled rules, danger first, then the highest priority; equals keep their order."""
    enabled = (rule for rule in rules if rule.enabled)
    return tuple(sorted(enabled, key=lambda r: (r.rule_type is not RuleType.DANGER, -r.priority)))
