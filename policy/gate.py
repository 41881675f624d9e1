"""The gate: every safety layer judges a call on its own, the most severe verdict counts, an error in a layer is a refusal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.approval import ApprovalLevel, Mode
from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.scope import Scope
from ..core.tool import Effect, Tool
from .mode import INTERNAL, OWN_PROCESSES, judge_mode
from .paths import confine, relative
from .rules import judge_command
from .verdict import Verdict, allow, ask, deny, join

_PATHS = ("file_path", "path", "source", "destination", "directory", "cwd", "working_dir")
_LINKS = frozenset({"delete_file", "move_file"})  # they act on a link itself, not on what it points to
_SECRET = frozenset({".env", ".ssh", ".gnupg", ".netrc", ".pgpass"})
_SETTINGS = frozenset({".opendev", ".mcp.json"})  # what would widen the agent's own rights


class Gate:
    """Judges calls of one agent in one folder: nothing is run, written or asked; only links are resolved.

    ``level`` says how much passes (APR-01), ``scope`` what may be written, ``extra_roots`` which folders besides ``root``
    are open (scratch), ``blocked_commands`` what is refused on top of the hard floor.
    """

    def __init__(
        self,
        *,
        level: ApprovalLevel,
        mode: Mode,
        root: Path,
        scope: Scope,
        extra_roots: tuple[Path, ...] = (),
        blocked_commands: tuple[str, ...] = (),
    ) -> None:
        self._level = level
        self._mode = mode
        self._root = root.resolve()
        self._scope = scope
        self._extra = tuple(item.resolve() for item in extra_roots)
        self._blocked = blocked_commands
        self._edits_approved = False

    @property
    def mode(self) -> Mode:
        """Plan mode, until a plan is approved."""
        return self._mode

    def plan_approved(self, *, edits: bool) -> None:
        """The user approved a plan: plan mode ends (C-08); with ``edits`` the edits that carry it out are not asked about (APR-09)."""
        self._mode = Mode.NORMAL
        self._edits_approved = edits

    def plan_done(self) -> None:
        """All steps of the plan are done: edits are asked about again."""
        self._edits_approved = False

    def judge(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """Allow, ask or deny, with the layer and a sentence that says why. Never raises."""
        layers: tuple[Callable[[Tool[Any], Frozen], Verdict], ...] = (
            lambda tool, _args: judge_mode(self._mode, tool),
            self._paths,
            self._command,
            self._by_level,
        )
        return join(_guarded(layer, tool, args) for layer in layers)

    def _paths(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """Every path argument, spelled and real: inside, not git's own, inside the task's scope when written."""
        verdicts: list[Verdict] = []
        for name in _PATHS:
            value = getattr(args, name, None)
            if not isinstance(value, str) or (value == "" and name not in args.model_fields_set):
                continue
            verdicts.append(self._path(tool, value or ".", follow=tool.name not in _LINKS))
        return join(verdicts or [allow("paths")])

    def _path(self, tool: Tool[Any], value: str, *, follow: bool) -> Verdict:
        try:
            real = confine(value, self._root, self._extra, follow=follow)
        except OpenDevError as error:
            return deny("paths", str(error))
        writes = Effect.WRITE in tool.effects
        inside = real.is_relative_to(self._root)
        spelled = relative(real, self._root)
        if writes and inside and not self._scope.allows(spelled):
            return deny("scope", f"{spelled} is outside of what this task may change.")
        names = [*Path(value).parts, *(Path(spelled).parts if inside else ())]
        parts = {name.casefold().rstrip(". ") for name in names}
        if parts & _SECRET:
            return ask("paths", f"{value} may hold secrets.")
        if writes and inside and parts & _SETTINGS:
            return ask("paths", f"{value} belongs to the settings that the agent works under.")
        return allow("paths")

    def _command(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """A command line is judged by every simple command in it."""
        command = getattr(args, "command", None)
        if Effect.EXEC not in tool.effects or not isinstance(command, str):
            return allow("command")
        folder = getattr(args, "cwd", None) or getattr(args, "working_dir", None)
        cwd = confine(folder, self._root, self._extra) if isinstance(folder, str) and folder else None
        return judge_command(command, self._level, (self._root, *self._extra), self._blocked, cwd)

    def _by_level(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """What the level says of tools other than command lines. Sub-agents are gated call by call, so a spawn may pass."""
        command_line = Effect.EXEC in tool.effects and isinstance(getattr(args, "command", None), str)
        if tool.name in INTERNAL or (command_line and self._level is not ApprovalLevel.MANUAL):
            return allow("level")
        edits = Effect.WRITE in tool.effects and tool.effects <= {Effect.READ, Effect.WRITE}
        if edits and (self._edits_approved or (self._level is ApprovalLevel.SEMI_AUTO and self._own(args))):
            return allow("level")
        match self._level:
            case ApprovalLevel.MANUAL:
                return ask("level", "Every call is confirmed at the level manual.")
            case ApprovalLevel.SEMI_AUTO:
                harmless = tool.read_only or tool.name in OWN_PROCESSES
                if harmless or tool.effects <= {Effect.SPAWN, Effect.READ}:
                    return allow("level")
                return ask(
                    "level",
                    f"{tool.name} can change things; at the level semi-auto such calls are confirmed.",
                )
            case ApprovalLevel.AUTO:
                return allow("level")

    def _own(self, args: Frozen) -> bool:
        """Whether every path lies in the agent's own folders outside of the root (scratch, plan file)."""
        paths = [value for name in _PATHS if isinstance(value := getattr(args, name, None), str) and value]
        real = [confine(path, self._root, self._extra) for path in paths]
        return bool(real) and not any(path.is_relative_to(self._root) for path in real)


def _guarded(layer: Callable[[Tool[Any], Frozen], Verdict], tool: Tool[Any], args: Frozen) -> Verdict:
    try:
        return layer(tool, args)
    except (OpenDevError, OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        # Fail closed (SAF-09): a layer that cannot decide refuses.
        return deny("gate", f"a safety check failed ({type(error).__name__}: {error})")
