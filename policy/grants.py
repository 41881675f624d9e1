"""What a person's answer allows besides the call itself: the rules behind "session" and "always", and their exact meaning (APR-06)."""

import posixpath
import re
import shlex
from collections.abc import Callable
from itertools import islice
from typing import Literal

from ..core.approval import ApprovalAnswer, ApprovalRequest
from ..core.chat import canonical
from ..core.model import Frozen, JsonObject
from ..core.permissions import COMMANDS, Action, Rule, RuleType
from .interpreters import INTERPRETERS
from .permissions import STARTERS, about_command, covered_by, first_rule
from .redact import redact
from .safe import read_only
from .shell import Script, Simple, parse
from .unwrap import layers

PATH_ARGUMENTS = ("file_path", "path", "source", "destination", "directory", "cwd", "working_dir")
PLAN = "present_plan"  # its answers are decisions about a plan, never rights
PRIORITY = 50  # of a rule that an "always" saves
MAX_GRANTS = 1_000  # of a session, each kind
_SHOWN = 4_000
_MAX_COMMANDS = 100
_MAX_RULES = 5  # that one answer may save
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_EXACT = (
    INTERPRETERS
    | STARTERS
    | frozenset(
        [
            "rm",
            "mv",
            "cp",
            "ln",
            "dd",
            "find",
            "sed",
            "awk",
            "tee",
            "touch",
            "mkdir",
            "chmod",
            "chown",
            "kill",
            "npx",
            "uvx",
        ]
    )
)  # their second word is no subcommand


class Choice(Frozen):
    """One line of an approval menu: the key that picks it, a name, and what exactly it means."""

    key: str
    decision: Literal["once", "session", "always", "deny"]
    label: str
    meaning: str


def choices(request: ApprovalRequest) -> tuple[Choice, ...]:
    """What a person may answer, narrowest first, refusal last."""
    if request.tool == PLAN:
        return (
            Choice(key="y", decision="once", label="Approve", meaning="the plan is carried out; each edit is asked about"),
            Choice(key="s", decision="session", label="Approve with its edits", meaning="the plan is carried out; its edits are not asked about"),
            Choice(key="n", decision="deny", label="Change it", meaning="the plan goes back with your note"),
        )  # fmt: skip
    once = "this call, changed by you, this one time" if request.must_edit else "this call, this one time"
    found = [Choice(key="y", decision="once", label="Allow once", meaning=once)]
    scope = _scope(request)
    if request.keep != "once":
        meaning = f"until this session ends, without asking: {scope}, by any agent, each in its own folder"
        found.append(Choice(key="s", decision="session", label="Allow in this session", meaning=meaning))
    if request.keep == "always":
        meaning = f"from now on in this project, saved in permissions.json: {scope}"
        found.append(Choice(key="a", decision="always", label="Always allow", meaning=meaning))
    return (
        *found,
        Choice(key="n", decision="deny", label="Deny", meaning="the call does not run; the agent is told so"),
    )


def proposal(tool: str, arguments: JsonObject) -> tuple[Rule, ...]:
    """The rules that "always" saves for this call; none when no rule could be said in a line or two.

    Commands: the program with its subcommand (``npm install``) where there is one, else the exact words. Tools with paths:
    the tool in the whole working folder. Others: exactly these arguments.
    """
    command = arguments.get("command")
    if tool == COMMANDS and isinstance(command, str):
        return _for_command(command)
    spelled, paths = subjects_of(arguments)
    if paths:
        return (_rule(RuleType.PREFIX, ".", tool),)
    return (_rule(RuleType.COMMAND, spelled[0], tool),) if len(spelled[0]) <= 2_000 else ()


def subjects_of(arguments: JsonObject) -> tuple[tuple[str, ...], bool]:
    """What rules for a tool compare: its paths as they are spelled (True), or all arguments as one line of JSON."""
    given = (arguments.get(name) for name in PATH_ARGUMENTS)
    paths = tuple(posixpath.normpath(value) for value in given if isinstance(value, str) and value)
    return (paths, True) if paths else ((canonical(arguments),), False)


def shown_call(arguments: JsonObject) -> str:
    """A call as logs show it: its command line, else its arguments; without secrets, at most 4,000 characters."""
    command = arguments.get("command")
    return redact(command if isinstance(command, str) else canonical(arguments))[:_SHOWN]


class Grants:
    """What people allowed in this session; at most ``MAX_GRANTS`` of each kind, then questions are asked again."""

    def __init__(self) -> None:
        self._exact: set[str] = set()
        self._rules: tuple[Rule, ...] = ()

    def note(self, request: ApprovalRequest, answer: ApprovalAnswer) -> None:
        """Remember an answer that goes beyond its call."""
        if answer.decision not in ("session", "always") or request.tool == PLAN or request.keep == "once":
            return
        if request.keep == "always":
            known = {rule.key for rule in self._rules}
            new = (rule for rule in proposal(request.tool, request.arguments) if rule.key not in known)
            self._rules = (*self._rules, *new)[:MAX_GRANTS]
        elif len(self._exact) < MAX_GRANTS:
            self._exact.add(request.digest)

    def cover(self, request: ApprovalRequest) -> bool:
        """Whether an earlier answer covers this request. A rule does so only where the gate would let one decide."""
        if request.must_edit or request.tool == PLAN or request.keep == "once":
            return False
        return request.digest in self._exact or (request.keep == "always" and self._by_rules(request))

    def _by_rules(self, request: ApprovalRequest) -> bool:
        command = request.arguments.get("command")
        if request.tool == COMMANDS and isinstance(command, str):
            found = _found(command)
            rules = [first_rule(self._rules, _about(item, inside)) for item, inside in found]
            pairs = zip(found, covered_by(found, rules), strict=True)
            return bool(found) and all(
                covered or read_only(inside, item) for (item, inside), covered in pairs
            )
        # Exactly the rule that this call itself would have saved; where its paths lie the gate has looked at.
        known = {rule.key for rule in self._rules}
        return all(rule.key in known for rule in proposal(request.tool, request.arguments))


def _found(command: str) -> list[tuple[Simple, Script]]:
    """Every command in the line; none when it cannot be taken apart, or is too long to be said in a line or two."""
    script = parse(command)
    found = list(islice(layers(script), _MAX_COMMANDS + 1))
    return [] if script.broken or len(found) > _MAX_COMMANDS else found


def _about(item: Simple, script: Script) -> Callable[[Rule], bool]:
    return lambda rule: about_command(rule, item, script)


def _for_command(command: str) -> tuple[Rule, ...]:
    found = _found(command)
    acts = [not read_only(inside, item) for item, inside in found]
    rules: list[Rule | None] = [None] * len(found)
    for number, (item, _) in enumerate(found):
        if (any(acts) and not acts[number]) or covered_by(found, rules)[number]:
            continue
        rules[number] = _for_one(item)
        if rules[number] is None:
            return ()
    kept = {rule.key: rule for rule in rules if rule is not None}
    return tuple(kept.values()) if len(kept) <= _MAX_RULES else ()


def _for_one(item: Simple) -> Rule | None:
    texts = [word.text for word in item.words]
    if not texts or not all(word.static for word in item.words):
        return None
    if len(texts) > 1 and _SUBCOMMAND.fullmatch(texts[1]) and item.name not in _EXACT:
        return _rule(RuleType.PREFIX, shlex.join(texts[:2]), COMMANDS)
    return _rule(RuleType.COMMAND, shlex.join(texts), COMMANDS)


def _rule(kind: RuleType, pattern: str, tool: str) -> Rule:
    return Rule(rule_type=kind, pattern=pattern, action=Action.APPROVE, priority=PRIORITY, tool=tool)


def _scope(request: ApprovalRequest) -> str:
    """The calls that a wider answer is about, in words."""
    rules = proposal(request.tool, request.arguments) if request.keep == "always" else ()
    if not rules:
        return "exactly this call"
    return "; ".join(_said(rule) for rule in rules)


def _said(rule: Rule) -> str:
    if rule.tool != COMMANDS:
        where = (
            "any path in the working folder"
            if rule.rule_type is RuleType.PREFIX
            else "exactly these arguments"
        )
        return f"{rule.tool} with {where}"
    if rule.rule_type is RuleType.PREFIX:
        return f"commands that begin with the words `{rule.pattern}`"
    return f"exactly the command `{rule.pattern}`"
