"""Commands that start commands: ``env``, ``timeout``, ``xargs``, ``sh -c``, ``find -exec`` … and what they start in the end.

An inner command is judged exactly like an outer one, so no wrapper hides anything (S12).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from .hidden import hidden
from .shell import Script, Simple, parse
from .words import Word

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"})
INTERPRETERS = SHELLS | {
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "deno",
    "bun",
    "osascript",
    "pwsh",
}
READERS = frozenset({"eval", "source", "."})
_DEPTH = 8
# Wrapper -> its options that take a value in the next word. The first word that is none of them begins the inner command.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir", "-S", "--split-string"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n", "-p", "--class", "--classdata"}),
    "timeout": frozenset({"-s", "--signal", "-k", "--kill-after"}),
    "stdbuf": frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}),
    "xargs": frozenset(
        {
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-a",
            "-E",
            "-s",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
        }
    ),
    "time": frozenset({"-f", "-o", "--format", "--output"}),
    "exec": frozenset({"-a"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group", "--chdir"}),
    "doas": frozenset({"-u", "-C"}),
    "chroot": frozenset(),
    "flock": frozenset({"-w", "-E", "--timeout"}),
    "strace": frozenset({"-e", "-o", "-p", "-s"}),
    "watch": frozenset({"-n", "--interval"}),
    "ssh": frozenset(
        {"-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-e", "-m", "-S", "-W", "-w", "-E"}
    ),
    "unshare": frozenset(),
    "parallel": frozenset({"-j", "--jobs"}),
    **{
        name: frozenset()
        for name in ("nohup", "setsid", "command", "builtin", "busybox", "toybox", "coproc", "caffeinate")
    },
    # Words of the shell's grammar where the parser takes them for a program (`! { rm x; }`).
    **{
        word: frozenset[str]()
        for word in [
            "{",
            "}",
            "!",
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "while",
            "until",
            "do",
            "done",
            "case",
            "in",
            "esac",
        ]
    },
}
WRAPPERS = frozenset(_WRAPPERS)
_OPERANDS = {"timeout": 1, "chroot": 1, "flock": 1, "ssh": 1}  # words of its own before the inner command
_JOINED = frozenset({"watch", "ssh", "parallel"})  # their words make a script, not an argv
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def layers(script: Script, depth: int = 0) -> Iterator[tuple[Simple, Script]]:
    """Every command of ``script``, outer and inner, with the script it stands in; inner scripts that are broken come as
    their own ``Script`` with a placeholder command, so that nothing is lost."""
    for item in script.commands:
        yield from _peel(item, script, depth)


def _peel(item: Simple, script: Script, depth: int) -> Iterator[tuple[Simple, Script]]:
    yield item, script
    if depth >= _DEPTH:
        yield replace(item, words=(Word("", static=False),)), script
        return
    for inner in _inner_commands(item):
        yield from _peel(inner, script, depth + 1)
    for text in _inner_scripts(item):
        if not text.strip():
            continue
        inside = parse(text, item.cwd or "/")
        for inner in inside.commands:
            if item.cwd is None and inner.cwd == "/":
                inner.cwd = None
            inner.upstream.extend(item.upstream)
        if inside.broken or inside.bomb or inside.oddities:
            yield Simple(words=(), text=text[:200], cwd=item.cwd), inside
        yield from layers(inside, depth + 1)


def _inner_commands(item: Simple) -> Iterator[Simple]:
    name = item.name
    if name == "find":
        for number, word in enumerate(item.args):
            if word.text in _EXECS:
                rest = item.args[number + 1 :]
                end = next((i for i, w in enumerate(rest) if w.text in (";", "+", "\\;")), len(rest))
                yield _inner(item, rest[:end])
    elif name in _WRAPPERS and name not in _JOINED:
        assignments, rest = _after_options(item, name)
        if rest:
            yield replace(_inner(item, rest), assignments=(*item.assignments, *assignments))


def _inner(item: Simple, words: tuple[Word, ...]) -> Simple:
    return replace(item, words=words)


def _after_options(item: Simple, name: str) -> tuple[list[tuple[str, Word]], tuple[Word, ...]]:
    """The assignments of ``env`` and the words of the inner command."""
    values, operands = _WRAPPERS[name], _OPERANDS.get(name, 0)
    assignments: list[tuple[str, Word]] = []
    words = list(item.args)
    while words:
        text = words[0].text
        if text.startswith("-") and len(text) > 1:
            del words[: 2 if text in values else 1]
        elif name in ("env", "sudo") and (found := re.match(r"([A-Za-z_]\w*)=(.*)", text, re.DOTALL)):
            assignments.append((found[1], Word(found[2], words[0].static)))
            del words[0]
        elif operands:
            operands -= 1
            del words[0]
        else:
            break
    return assignments, tuple(words)


def _inner_scripts(item: Simple) -> Iterator[str]:
    yield from hidden(item)
    name = item.name
    if name in SHELLS:
        yield from _dash_c(item)
        echoes = (before for before in item.upstream if before.name in ("echo", "printf"))
        yield from (_printed(before) for before in echoes)
    if name in SHELLS or any(inner.name in SHELLS for inner in item.nested):
        yield from (redirect.text for redirect in item.redirects)
    match name:
        case "script" | "su" | "runuser":
            yield from _dash_c(item)
        case "eval":
            yield _joined(item.args)
        case "watch" | "ssh" | "parallel":
            yield _joined(_after_options(item, name)[1])
        case "env":
            yield from (b.text for a, b in pairwise(item.args) if a.text in ("-S", "--split-string"))
        case "trap":
            yield _joined(item.args[:1])
        case _:
            return


def _printed(item: Simple) -> str:
    """What ``echo`` or ``printf`` hands to the shell behind the pipe, as far as it can be seen."""
    return _joined(word for word in item.args if not word.text.startswith("-")).replace("\\n", "\n")


def _joined(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in words)


def _dash_c(item: Simple) -> Iterator[str]:
    for number, word in enumerate(item.args):
        if re.fullmatch(r"-[A-Za-z]*c", word.text) or word.text == "--command":
            if number + 1 < len(item.args):
                yield item.args[number + 1].text
            return
        if word.text.startswith("--command="):
            yield word.text.split("=", 1)[1]
            return
