"""AppConfig: every setting with its type and meaning. Defaults stand in defaults.toml, so none stands here."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from ..core.approval import ApprovalLevel
from ..core.chat import Role, ThinkingLevel
from ..core.hooks import Hooks
from ..core.model import Frozen, JsonObject


class Roles(Frozen):
    """Models of the roles besides the action model; empty = fall back (MOD-02)."""

    thinking: str
    critique: str
    vision: str
    compact: str


class Providers(Frozen):
    """Put in front of a role's model that has no provider/ of its own; empty = ``provider``."""

    thinking: str
    critique: str
    vision: str
    compact: str


class Tiers(Frozen):
    """Models of the three tiers that a spawn may name instead of a model; empty = the parent's model (SUB-10)."""

    haiku: str
    sonnet: str
    opus: str


class Agents(Frozen):
    """Caps of agents: iterations, how many at once, how deep, how many in all; approval time-out in seconds; failures in a row
    after which the tier ``opus`` takes over, 0 = never."""

    max_iterations: int = Field(ge=1, le=1000)
    subagent_iterations: int = Field(ge=1, le=1000)
    max_concurrent: int = Field(ge=1, le=256)
    max_depth: int = Field(ge=0, le=8)
    max_total: int = Field(ge=0, le=10_000)
    approval_timeout_s: float = Field(gt=0)
    escalate_after: int = Field(ge=0, le=100)


class Thinking(Frozen):
    """How much agents think before they act, in a model call of its own (LOOP-06)."""

    level: ThinkingLevel


class Commands(Frozen):
    """Limits of one shell command, in seconds without output and in all; how long a server is watched while it starts."""

    idle_s: float = Field(gt=0)
    total_s: float = Field(gt=0)
    startup_s: float = Field(gt=0, le=120)


class Lsp(Frozen):
    """Language servers: whether edits report the errors that a running server sees afterwards (FIL-10)."""

    diagnostics: Literal["on", "off"]


class Edit(Frozen):
    """What approximate edit passes do with a region that differs in content: name it, or edit it (C-46)."""

    similarity: Literal["locate", "apply"]


class Context(Frozen):
    """Compaction thresholds as shares of the window; offload in characters; window and repository map in tokens."""

    thresholds: tuple[float, float, float, float, float]
    offload_chars: int = Field(ge=1000)
    fallback_window: int = Field(ge=4096)
    small_window: int = Field(ge=0)
    repo_map_tokens: int = Field(ge=0, le=20_000)


class Memory(Frozen):
    """The project's playbook: used or not, and in which runs it is extended; tokens that memory work may use in one run, and
    the share of the run's own tokens beyond which no further reflection begins; seconds after the end."""

    playbook: bool
    learn: Literal["sessions", "always", "never"]
    max_tokens: int = Field(ge=0)
    share: float = Field(ge=0, le=1)
    finish_s: float = Field(ge=0, le=120)


class Retry(Frozen):
    """Tries of one model call, back-off bounds in seconds, failures until a provider's breaker opens and its first pause."""

    max_tries: int = Field(ge=1, le=20)
    base_s: float = Field(gt=0)
    cap_s: float = Field(gt=0)
    breaker_after: int = Field(ge=1)
    open_s: float = Field(gt=0)


class Cost(Frozen):
    """US dollars per million tokens, of a model that neither a catalogue nor ``prices`` knows."""

    assumed_input_usd: float = Field(ge=0)
    assumed_output_usd: float = Field(ge=0)


class CatalogSettings(Frozen):
    """Where the catalogue of models is fetched from, in the format of models.dev; empty = never (MOD-04)."""

    url: str


class Swarm(Frozen):
    """Defaults of batch runs; MB, seconds."""

    disk_floor_mb: int = Field(ge=0)
    verify_timeout_s: float = Field(gt=0)
    setup_timeout_s: float = Field(gt=0)


class SandboxSettings(Frozen):
    """How commands are confined (SAF-08): by what, with the network or without, where else they may write, what they do not see.

    Places are ``/…``, ``~/…`` or ``$NAME/…``, with globs; one that does not exist is passed over.
    """

    mode: Literal["auto", "bubblewrap", "landlock", "off"] = "auto"
    network: Literal["allow", "deny"] = "allow"
    write: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()


class Sessions(Frozen):
    """Turns between two writes of a session's record (SES-04); whether the compact model makes titles (SES-07)."""

    auto_save_interval: int = Field(ge=1, le=100)
    titles: Literal["auto", "off"]


class Undo(Frozen):
    """Snapshots for undo: made or not; ignored files covered or not; bounds (files, MB of one file, MB that one snapshot adds);
    seconds that a snapshot may hold up a tool call."""

    enabled: bool
    ignored: Literal["skip", "cover"]
    max_files: int = Field(ge=1)
    max_file_mb: int = Field(ge=1)
    max_new_mb: int = Field(ge=1)
    wait_s: float = Field(gt=0, le=60)


class RuntimeSettings(Frozen):
    """Where actors run."""

    address: str


class Web(Frozen):
    """Whether web tools may reach private addresses; the engine that ``web_search`` asks."""

    allow_private: bool
    search_provider: str = Field(min_length=1)


class Price(Frozen):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class AppConfig(Frozen):
    """All settings, validated once at start and served from memory (CFG-01, CFG-05)."""

    model: str
    provider: str
    temperature: float = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1)
    max_context_tokens: int | None = Field(
        default=None, ge=4096
    )  # an upper bound on the derived window (C-19)
    auto_approve: bool
    approval: ApprovalLevel
    blocked_commands: tuple[str, ...]
    deny_read: tuple[str, ...]  # files that no tool reads, as in a .gitignore; every layer adds to it
    schema_deferral: Literal["off", "external", "all"]  # whose tool schemas wait for their activation (C-12)
    roles: Roles
    providers: Providers
    tiers: Tiers
    agents: Agents
    thinking: Thinking
    commands: Commands
    edit: Edit
    lsp: Lsp
    context: Context
    memory: Memory
    retry: Retry
    cost: Cost
    catalog: CatalogSettings
    swarm: Swarm
    sandbox: SandboxSettings
    sessions: Sessions
    undo: Undo
    runtime: RuntimeSettings
    web: Web
    hooks: Hooks
    prices: dict[str, Price] = {}  # of models no catalogue knows
    mcp_servers: dict[str, JsonObject] = {}  # beside those of mcp.json, in its format

    @property
    def approval_level(self) -> ApprovalLevel:
        """``auto_approve`` is the same as level auto (C-35)."""
        return ApprovalLevel.AUTO if self.auto_approve else self.approval

    def models(self) -> dict[Role, str]:
        """The configured models by role, each as provider/NAME; roles left empty are absent."""
        providers = self.providers.model_dump()
        named = {
            Role.ACTION: self._qualified(self.model),
            **{
                Role(name): self._qualified(model, providers[name])
                for name, model in self.roles.model_dump().items()
            },
        }
        return {role: model for role, model in named.items() if model}

    def tier_models(self) -> dict[str, str]:
        """The configured models by tier, each as provider/NAME; tiers left empty are absent."""
        return {tier: self._qualified(model) for tier, model in self.tiers.model_dump().items() if model}

    def stronger_model(self) -> str:
        """The model that takes over from one that keeps failing; empty = none does (MOD-10)."""
        return self.named_model("opus") if self.agents.escalate_after else ""

    def named_model(self, name: str) -> str:
        """What a tier or a model without its provider stands for; empty when the tier has no model (SUB-10)."""
        tiers = self.tiers.model_dump()
        return self._qualified(tiers.get(name, name)) if name and tiers.get(name, name) else ""

    def _qualified(self, model: str, provider: str = "") -> str:
        before = provider or self.provider
        return model if not model or "/" in model or not before else f"{before}/{model}"


SPELLINGS = {  # the flat names of Catalogue F, and their kin: another way to write the settings they stand for
    "web_search_provider": "web.search_provider",
    **{f"{role}_model": f"roles.{role}" for role in Roles.model_fields},
    **{f"{role}_provider": f"providers.{role}" for role in Providers.model_fields},
}


def leaf_keys() -> tuple[str, ...]:
    """Every dotted key of the schema, in order of declaration."""
    return tuple(fields())


@cache
def groups() -> frozenset[str]:
    """The dotted names of settings that hold settings: ``agents``."""
    return frozenset(key.rpartition(".")[0] for key in leaf_keys()) - {""}


@cache
def fields() -> Mapping[str, FieldInfo]:
    """Every setting by its dotted key."""
    return _fields(AppConfig, "")


def _fields(model: type[Frozen], prefix: str) -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, Frozen):
            found |= _fields(kind, f"{prefix}{name}.")
        else:
            found[prefix + name] = field
    return found
