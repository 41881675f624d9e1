"""The verdict on one command line: hard floor, blocked commands, what must be confirmed, then the approval level."""

import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..core.approval import ApprovalLevel
from ..core.permissions import Permissions, Rule
from .confirm import confirm
from .danger import floor
from .gitwork import git_words
from .permissions import about_command, covered_by, first_rule, verdict_of
from .safe import read_only
from .shell import Script, Simple, parsed
from .unwrap import layers
from .verdict import Verdict, allow, ask, deny, join

_MAX_LAYERS = 2_000  # commands inside commands of one line
_NONE = Permissions()


def judge_command(
    command: str,
    level: ApprovalLevel,
    roots: tuple[Path, ...],
    blocked: tuple[str, ...] = (),
    cwd: Path | None = None,
    permissions: Permissions = _NONE,
) -> Verdict:
    """The most severe verdict on ``command``, run in ``cwd`` (default: the first of ``roots``, the working folder).

    Every simple command is judged, wherever it stands and whatever starts it. Deny: the hard floor (APR-04) and
    ``blocked`` (words of a command, ``git push``; they only add). Ask at every level: what C-33 lists, and what cannot be
    parsed. Then the rules of ``permissions``, then for what no rule allows the level: ``manual`` asks, ``semi-auto`` passes
    only commands known to read, ``auto`` passes the rest (C-11).
    """
    places = tuple(str(root) for root in roots)
    script = parsed(command, str(cwd or roots[0]))
    found = list(islice(layers(script), _MAX_LAYERS + 1))
    verdicts = list(_absolute(script, found, places, blocked))
    if len(found) > _MAX_LAYERS:
        verdicts.append(ask("confirm", "The command starts too many commands to be judged."))
    judged = [_by_rules(permissions, item, inside, command) for item, inside in found]
    if script.broken:  # what refuses is looked for in the text, too
        whole = Simple(words=(), text=command, cwd=None)
        verdicts.append(_by_rules(permissions, whole, script, command)[1])
    verdicts += [verdict for _, verdict in judged if verdict.rule]
    verdicts.append(_by_level(level, found, covered_by(found, [rule for rule, _ in judged])))
    return join(verdicts)


def _by_rules(
    permissions: Permissions, item: Simple, script: Script, line: str
) -> tuple[Rule | None, Verdict]:
    """The rule that decides about one simple command, and the verdict with what a foreign project adds."""

    def about(rule: Rule) -> bool:
        return about_command(rule, item, script, line)

    shown = f"`{_shown(item)}`"
    rule, narrower = first_rule(permissions.rules, about), first_rule(permissions.narrowing, about)
    return rule, join([verdict_of(rule, shown), verdict_of(narrower, shown)])


def _shown(item: Simple) -> str:
    return re.sub(r"\s+", " ", item.text)[:200]


def _absolute(
    script: Script, found: list[tuple[Simple, Script]], places: tuple[str, ...], blocked: tuple[str, ...]
) -> Iterator[Verdict]:
    """What holds at every level."""
    for inside in [script, *(inner for _, inner in found)]:
        if inside.bomb:
            yield deny("floor", "It is a fork bomb: a function that starts itself again and again.")
        if inside.broken:
            yield ask("parse", f"It cannot be judged: {inside.broken}.")
    for item, _ in found:
        shown = _shown(item)
        why = floor(item, places[0])
        if why:
            yield deny("floor", f"`{shown}` is never run: {why}.")
        rule = next((rule for rule in blocked if _matches(item, rule)), None)
        if rule is not None:
            yield deny("blocked_commands", f"`{shown}` is blocked by the setting blocked_commands ({rule}).")
        why = confirm(item, script, places)
        if why:
            yield ask("confirm", f"`{shown}` must be confirmed: {why}.")


def _by_level(level: ApprovalLevel, found: list[tuple[Simple, Script]], covered: list[bool]) -> Verdict:
    open_ = [pair for pair, allowed in zip(found, covered, strict=True) if not allowed]
    if found and not open_:
        return allow("level", "Rules of permissions.json allow it.")
    match level:
        case ApprovalLevel.MANUAL:
            return ask("level", "Every call is confirmed at the level manual.")
        case ApprovalLevel.SEMI_AUTO:
            for item, inside in open_:
                if not read_only(inside, item):
                    return ask("level", f"`{_shown(item)}` is not known to only read.")
            return allow("level", "It only reads.") if found else ask("level", "No command was found.")
        case ApprovalLevel.AUTO:
            return allow("level")


def _matches(item: Simple, rule: str) -> bool:
    """Whether the command begins with the words of ``rule``; git's own options before the subcommand are skipped."""
    try:
        wanted = shlex.split(rule)
    except ValueError:
        wanted = rule.split()
    words = [item.name, *(word.text for word in item.args)]
    if item.name == "git":
        words = ["git", *git_words(item)[1]]
    return bool(wanted) and words[: len(wanted)] == wanted
