"""Whether a rule of permissions.json is about a call (APR-02, APR-03): what refuses is matched broadly, what allows narrowly."""

import posixpath
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..core.permissions import COMMANDS, Action, Rule, RuleType
from .gitwork import git_words
from .safe import plain_surroundings, read_only
from .shell import Script, Simple
from .verdict import Verdict, allow, ask, deny

LAYER = "rules"
_NESTED = 16  # commands around a command that are remembered
_PASS_ON = frozenset(["timeout", "nice", "ionice", "nohup", "time", "command", "stdbuf"])
_TIME_S = 0.1  # for one regular expression
# What they do is in their arguments, or changes what later words mean (S45): only their exact words can be allowed.
STARTERS = frozenset(
    ["alias", "bind", "builtin", "busybox", "chroot", "command", "compgen", "complete", "coproc", "doas", "enable", "env", "eval",
     "exec", "flock", "hash", "ionice", "mapfile", "nice", "nohup", "parallel", "readarray", "script", "setsid", "source", ".", "ssh",
     "stdbuf", "strace", "sudo", "time", "timeout", "trap", "unshare", "watch", "xargs"]
)  # fmt: skip


def first_rule(rules: Sequence[Rule], about: Callable[[Rule], bool]) -> Rule | None:
    """The rule that decides: ``rules`` come by priority, the first that matches counts (APR-03)."""
    return next((rule for rule in rules if about(rule)), None)


def verdict_of(rule: Rule | None, shown: str) -> Verdict:
    """What a rule says of the call ``shown``; no rule has no objection."""
    if rule is None:
        return allow(LAYER)
    name = f"the rule `{rule.label}` of permissions.json"
    match rule.action:
        case Action.APPROVE:
            found = allow(LAYER, f"Allowed by {name}.")
        case Action.DENY:
            found = deny(LAYER, f"{shown} is refused by {name}.")
        case Action.EDIT:
            found = ask(LAYER, f"{shown} must be changed by a person before it runs, by {name}.")
        case Action.ASK:
            found = ask(LAYER, f"{shown} must be confirmed, by {name}.")
    return found.model_copy(update={"rule": rule.label, "edit": rule.action is Action.EDIT})


def about_command(rule: Rule, item: Simple, script: Script, line: str = "") -> bool:
    """Whether ``rule`` is about this simple command. ``line``: the whole line, which an exact rule may spell out, and in
    which expressions that refuse are looked for, too."""
    if rule.tool != COMMANDS:
        return False
    if rule.rule_type is RuleType.COMMAND and not script.broken and line.strip() == rule.pattern.strip():
        return True
    if rule.action is Action.APPROVE:
        return _covers(rule, item, script)
    if rule.rule_type in (RuleType.PATTERN, RuleType.DANGER):
        texts = {item.text, *(" ".join(words) for words in _spellings(item)), line}
        return any(_matches(rule.pattern, text, whole=False, late=True) for text in texts if text)
    wanted = _words(rule.pattern)
    if rule.rule_type is RuleType.COMMAND:
        return wanted in _spellings(item)
    return any(words[: len(wanted)] == wanted for words in _spellings(item))


def covered_by(found: Sequence[tuple[Simple, Script]], rules: Sequence[Rule | None]) -> list[bool]:
    """Whether each command of a line is allowed by a rule: its own, or one on the command around it that names it, too
    (``npx eslint``). A wrapper that only passes on (``timeout 60``) needs no rule beside that of what it starts."""
    covered: list[bool] = []
    around: deque[tuple[Simple, int]] = deque(
        maxlen=_NESTED
    )  # allowed commands, and how many of their words were named
    for (item, _), rule in zip(found, rules, strict=True):
        allowed = rule is not None and rule.action is Action.APPROVE
        named = rule is None and any(_starts(outer, item) in range(1, reach) for outer, reach in around)
        if allowed and rule is not None:
            prefix = rule.rule_type is RuleType.PREFIX
            around.append((item, len(_words(rule.pattern)) if prefix else len(item.words)))
        covered.append(allowed or named)
    if any(covered):
        for number in reversed(range(len(found) - 1)):
            item, after = found[number][0], found[number + 1][0]
            passes = rules[number] is None and _passes_on(item, after)
            covered[number] = covered[number] or (passes and covered[number + 1])
    return covered


def _starts(outer: Simple, inner: Simple) -> int:
    """At which of its words ``outer`` hands over to ``inner``; 0 = it does not."""
    at = len(outer.words) - len(inner.words)
    return at if inner.words and at > 0 and outer.words[at:] == inner.words else 0


def _passes_on(item: Simple, inner: Simple) -> bool:
    head = item.words[: _starts(item, inner)]
    bare = bool(head) and head[0].text in _PASS_ON and all(word.static and not word.glob for word in head)
    return bare and not any(
        word.text.startswith(("-o", "--o", "-a", "--a")) and item.name == "time" for word in head
    )


def about_call(rule: Rule, tool: str, subjects: Iterable[str], *, paths: bool) -> bool:
    """Whether ``rule`` is about a call of a tool other than a command line; ``subjects`` are its paths, spelled and real, or
    what else it is given. A rule that allows must cover all of them, another is about the call when one is met."""
    if rule.tool != tool and not (rule.tool == "*" and paths):
        return False
    hits = [_subject(rule, subject) for subject in subjects]
    return all(hits) and bool(hits) if rule.action is Action.APPROVE else any(hits)


def _subject(rule: Rule, subject: str) -> bool:
    match rule.rule_type:
        case RuleType.COMMAND:
            return subject == rule.pattern
        case RuleType.PREFIX:
            folder = posixpath.normpath(rule.pattern)
            inside = folder == "." and not subject.startswith(("/", "~", "../")) and subject != ".."
            return inside or subject == folder or subject.startswith(f"{folder}/")
        case RuleType.PATTERN | RuleType.DANGER:
            allows = rule.action is Action.APPROVE
            return _matches(rule.pattern, subject, whole=allows, late=not allows)


def _covers(rule: Rule, item: Simple, script: Script) -> bool:
    """Whether a rule that allows covers exactly this command: whole words, nothing around it that writes (S05, S06, S47)."""
    texts = [word.text for word in item.words]
    if script.broken or script.oddities or not texts or not item.words[0].static or item.words[0].glob:
        return False
    if not plain_surroundings(item):
        return False
    if rule.rule_type is RuleType.COMMAND:
        return all(word.static for word in item.words) and texts == _words(rule.pattern)
    if item.name in STARTERS:
        return False
    if rule.rule_type is RuleType.PATTERN:
        plain = all(word.static for word in item.words)
        spaced = any(not text or any(char.isspace() for char in text) for text in texts)
        return plain and _matches(rule.pattern, shlex.join(texts) if spaced else " ".join(texts), whole=True)
    wanted = _words(rule.pattern)
    known = all(word.static and not word.glob for word in item.words[: len(wanted)])
    return bool(wanted) and known and texts[: len(wanted)] == wanted and _as_meant(item, script, len(wanted))


def _as_meant(item: Simple, script: Script, length: int) -> bool:
    """A prefix that only reads does not cover an option with which the command does more (``git diff --output=x``)."""
    if not read_only(script, replace(item, words=item.words[:length])) or read_only(script, item):
        return True
    return not any(word.text.startswith("-") or not word.static for word in item.words[length:])


def _spellings(item: Simple) -> list[list[str]]:
    """The words as they stand, with the program's base name, and without git's own options: what a refusal looks at."""
    texts = [word.text for word in item.words]
    found = [texts, [item.name, *texts[1:]]]
    if item.name == "git":
        found.append(["git", *git_words(item)[1]])
    return found


def _words(pattern: str) -> list[str]:
    try:
        return shlex.split(pattern)
    except ValueError:
        return pattern.split()


def _matches(pattern: str, text: str, *, whole: bool, late: bool = False) -> bool:
    """``late`` is the answer when the expression takes too long: a rule that refuses refuses, one that allows does not."""
    import regex  # 8 ms: most have no rules

    try:
        if whole:
            return regex.fullmatch(pattern, text, timeout=_TIME_S) is not None
        return regex.search(pattern, text, timeout=_TIME_S) is not None
    except TimeoutError:
        return late
