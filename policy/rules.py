"""The verdict on one command line: hard floor, blocked commands, what must be confirmed, then the approval level."""

import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..core.approval import ApprovalLevel
from .confirm import confirm, git_words
from .danger import floor
from .safe import read_only
from .shell import Script, Simple, parse
from .unwrap import layers
from .verdict import Verdict, allow, ask, deny, join

_MAX_LAYERS = 2_000  # commands inside commands of one line


def judge_command(
    command: str,
    level: ApprovalLevel,
    roots: tuple[Path, ...],
    blocked: tuple[str, ...] = (),
    cwd: Path | None = None,
) -> Verdict:
    """The most severe verdict on ``command``, run in ``cwd`` (default: the first of ``roots``, the working folder).

    Every simple command is judged, wherever it stands and whatever starts it. Deny: the hard floor (APR-04) and
    ``blocked`` (words of a command, ``git push``; they only add). Ask at every level: what C-33 lists, and what cannot be
    parsed. Then the level: ``manual`` asks, ``semi-auto`` passes only commands known to read, ``auto`` passes the rest.
    """
    places = tuple(str(root) for root in roots)
    script = parse(command, str(cwd or roots[0]))
    found = list(islice(layers(script), _MAX_LAYERS + 1))
    verdicts = list(_absolute(script, found, places, blocked))
    if len(found) > _MAX_LAYERS:
        verdicts.append(ask("confirm", "The command starts too many commands to be judged."))
    verdicts.append(_by_level(level, found))
    return join(verdicts)


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
        shown = re.sub(r"\s+", " ", item.text)[:200]
        why = floor(item, places[0])
        if why:
            yield deny("floor", f"`{shown}` is never run: {why}.")
        rule = next((rule for rule in blocked if _matches(item, rule)), None)
        if rule is not None:
            yield deny("blocked_commands", f"`{shown}` is blocked by the setting blocked_commands ({rule}).")
        why = confirm(item, script, places)
        if why:
            yield ask("confirm", f"`{shown}` must be confirmed: {why}.")


def _by_level(level: ApprovalLevel, found: list[tuple[Simple, Script]]) -> Verdict:
    match level:
        case ApprovalLevel.MANUAL:
            return ask("level", "Every call is confirmed at the level manual.")
        case ApprovalLevel.SEMI_AUTO:
            for item, inside in found:
                if not read_only(inside, item):
                    shown = re.sub(r"\s+", " ", item.text)[:200]
                    return ask("level", f"`{shown}` is not known to only read.")
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
