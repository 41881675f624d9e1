"""The gate: every safety layer judges a call on its own, the most severe verdict counts, an error in a layer is a refusal."""

import copy
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.approval import ApprovalLevel, Keep, Mode
from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.permissions import Action, Permissions
from ..core.scope import Scope
from ..core.tool import Effect, Tool
from .gitconfig import judge_git
from .grants import PATH_ARGUMENTS, proposal, subjects_of
from .hooks import answered
from .mode import INTERNAL, OWN_PROCESSES, judge_mode
from .paths import below, confine, folded
from .permissions import about_call, first_rule, verdict_of
from .rules import judge_command
from .secrets import secrets_of
from .verdict import Verdict, allow, ask, deny, join

_NONE = Permissions()
_LINKS = frozenset({"delete_file", "move_file"})  # they act on a link itself, not on what it points to
_SECRET = frozenset({".env", ".ssh", ".gnupg", ".netrc", ".pgpass"})
_SETTINGS = frozenset({".opendev", ".mcp.json"})  # what would widen the agent's own rights
# Whatever code can raise on strange input; what the interpreter itself raises (no memory, an interrupt) ends the call all the same.
_FAILURES = (
    *(OpenDevError, OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, AssertionError, NameError, re.error),
)


class Gate:
    """Judges calls of one agent in one folder: nothing is run, written or asked; only links are resolved.

    ``level`` says how much passes (APR-01), ``scope`` what may be written, ``extra_roots`` which folders besides ``root``
    are open (scratch), ``blocked_commands`` what is refused on top of the hard floor, ``deny_read`` which files nothing reads,
    ``permissions`` the rules of the user and of the project (APR-02).
    """

    def __init__(  # noqa: PLR0913 - what a judgement rests on
        self,
        *,
        level: ApprovalLevel,
        mode: Mode,
        root: Path,
        scope: Scope,
        extra_roots: tuple[Path, ...] = (),
        blocked_commands: tuple[str, ...] = (),
        deny_read: tuple[str, ...] = (),
        permissions: Permissions = _NONE,
    ) -> None:
        self._level = level
        self._mode = mode
        self._root = root.resolve()
        self._scope = scope
        self._extra = tuple(item.resolve() for item in extra_roots)
        self._blocked = blocked_commands
        self._secrets = secrets_of(deny_read)
        self._permissions = permissions
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

    def judge(self, tool: Tool[Any], args: Frozen, *, by_hook: bool = False) -> Verdict:
        """Allow, ask or deny, with the layer and a sentence that says why. Never raises. ``by_hook``: a hook of the user's
        allowed exactly this call, which answers what the level or a rule asks and nothing else (C-11)."""
        layers: tuple[Callable[[Tool[Any], Frozen], Verdict], ...] = (
            lambda tool, _args: judge_mode(self._mode, tool),
            self._paths,
            self._command,
            self._hands_over,
            self._by_rules,
            self._by_level,
        )
        verdicts = [_guarded(layer, tool, args) for layer in layers]
        return join([answered(verdict) for verdict in verdicts] if by_hook else verdicts)

    def _paths(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """Every path argument, spelled and real: inside, not git's own, inside the task's scope when written."""
        verdicts: list[Verdict] = []
        for name in PATH_ARGUMENTS:
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
        spelled = below(real, self._root)
        if writes and inside and not self._scope.allows(spelled):
            return deny("scope", f"{spelled} is outside of what this task may change.")
        asked = below(Path(os.path.normpath(self._root / value)), self._root)
        names = [*Path(asked).parts, *(Path(spelled).parts if inside else ())]
        parts = {folded(name) for name in names}
        secret = self._secrets.holds(self._root / value, self._root)
        if secret and not writes:
            return deny("secrets", f"{value} is not read: files like it hold secrets (setting deny_read).")
        if secret or parts & _SECRET:
            return ask("paths", f"{value} may hold secrets.")
        if writes and inside and parts & _SETTINGS:
            return ask("paths", f"{value} belongs to the settings that the agent works under.")
        return allow("paths")

    def _command(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """A command line is judged by every simple command in it."""
        command = _command_of(tool, args)
        if command is None:
            return allow("command")
        folder = getattr(args, "cwd", None) or getattr(args, "working_dir", None)
        cwd = confine(folder, self._root, self._extra) if isinstance(folder, str) and folder else None
        roots = (self._root, *self._extra)
        return judge_command(command, self._level, roots, self._blocked, cwd, self._permissions)

    def _hands_over(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """A command line that names a file which nothing reads, or has git run what the repository names (T04, T08, T18)."""
        command = _command_of(tool, args)
        if command is None:
            return allow("secrets")
        folder = getattr(args, "cwd", None) or getattr(args, "working_dir", None)
        cwd = confine(folder, self._root, self._extra) if isinstance(folder, str) and folder else None
        secret = self._secrets.judge_command(command, self._root, cwd)
        return join((secret, judge_git(command, self._level, self._root)))

    def keep(self, tool: Tool[Any], args: Frozen, verdict: Verdict) -> Keep:
        """The widest scope in which a person may answer ``verdict``, a question about this call (APR-06).

        "always" only where the rule that would be saved lets this very call pass: what must be confirmed at every level stays
        a question. "session" is otherwise for exactly these arguments, and what a person must change is asked each time.
        """
        if verdict.edit:
            return "once"
        saved = copy.copy(self)
        rules = proposal(tool.name, args.model_dump(mode="json", by_alias=True))
        saved._permissions = self._permissions.plus(rules)  # noqa: SLF001 - of its own class
        return "always" if saved.judge(tool, args).decision == "allow" else "session"

    def _by_rules(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """What rules refuse or ask about, of tools other than command lines (those are judged command by command)."""
        if self._permissions == _NONE or _command_of(tool, args) is not None or tool.name in INTERNAL:
            return allow("rules")
        subjects, paths = self._subjects(args)
        rules = (self._permissions.rules, self._permissions.narrowing)
        return join(
            verdict_of(
                first_rule(some, lambda rule: about_call(rule, tool.name, subjects, paths=paths)), tool.name
            )
            for some in rules
        )

    def _subjects(self, args: Frozen) -> tuple[tuple[str, ...], bool]:
        """What rules compare, with the real places of paths beside the spelled ones (T04)."""
        spelled, paths = subjects_of(args.model_dump(mode="json", by_alias=True))
        if not paths:
            return spelled, False
        real = (below((self._root / one).resolve(), self._root) for one in spelled)
        plain = (below(Path(os.path.normpath(self._root / one)), self._root) for one in spelled)
        return tuple(dict.fromkeys((*plain, *real))), True

    def _allowed(self, tool: Tool[Any], args: Frozen) -> bool:
        """Whether a rule lets this call pass, of whatever level."""
        if not self._permissions.rules:
            return False
        subjects, paths = self._subjects(args)
        rule = first_rule(
            self._permissions.rules, lambda rule: about_call(rule, tool.name, subjects, paths=paths)
        )
        return rule is not None and rule.action is Action.APPROVE

    def _by_level(self, tool: Tool[Any], args: Frozen) -> Verdict:
        """What the level says of tools other than command lines. Sub-agents are gated call by call, so a spawn may pass."""
        if tool.name in INTERNAL or _command_of(tool, args) is not None or self._allowed(tool, args):
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
        paths = [
            value for name in PATH_ARGUMENTS if isinstance(value := getattr(args, name, None), str) and value
        ]
        real = [confine(path, self._root, self._extra) for path in paths]
        return bool(real) and not any(path.is_relative_to(self._root) for path in real)


def _command_of(tool: Tool[Any], args: Frozen) -> str | None:
    """The command line that a call would run."""
    command = getattr(args, "command", None)
    return command if Effect.EXEC in tool.effects and isinstance(command, str) else None


def _guarded(layer: Callable[[Tool[Any], Frozen], Verdict], tool: Tool[Any], args: Frozen) -> Verdict:
    try:
        return layer(tool, args)
    except _FAILURES as error:
        # Fail closed (SAF-09): a layer that cannot decide refuses.
        return deny("gate", f"a safety check failed ({type(error).__name__}: {error})")
