"""Programs that run what they are given: which those are, and what reaches them by ``-c``, a pipe or a here-document."""

import re

from .shell import Simple
from .words import Word
from .wrappers import inner

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"})
INTERPRETERS = SHELLS | {
    *("python", "python2", "python3", "pypy3", "perl", "ruby", "node", "nodejs", "php", "lua", "deno", "bun"),
    *("osascript", "pwsh", "powershell", "tclsh"),
}
READERS = frozenset({"eval", "source", "."})
STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def is_interpreter(item: Simple) -> bool:
    """Whether the program runs code that it is given, whatever its version."""
    return item.name in INTERPRETERS or bool(
        re.fullmatch(r"(?:python|pypy|perl|ruby|lua|php)\d[\d.]*", item.name)
    )


def script_word(item: Simple) -> Word | None:
    """The script that a shell is given: the text after ``-c``, else its first operand; None when it reads standard input."""
    words = list(item.args)
    text = False
    while words:
        word = words.pop(0)
        if word.text in ("--command",) or re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word.text):
            text = True
        elif word.text.startswith("--command="):
            return Word(word.text.partition("=")[2], word.static)
        elif word.text in ("-s",) and not text:
            return None
        elif re.fullmatch(r"[-+][A-Za-z]*[oO]", word.text) or word.text in ("--rcfile", "--init-file"):
            del words[:1]
        elif not word.text.startswith(("-", "+")) or word.text in STDIN:
            return None if word.text in STDIN and not text else word
    return None


def feeds(item: Simple) -> tuple[list[str], bool]:
    """The texts that reach the standard input of a command, and whether that is all of it."""
    texts: list[str] = []
    known = True
    for redirect in item.redirects:
        if redirect.operator in ("<<", "<<<"):
            texts.append(redirect.text)
            known = known and not re.search(r"\$[\w({]|`", redirect.text)
        elif redirect.operator == "<":
            known = False
    for source in item.upstream:
        before = inner(source) or source
        if before.name in ("echo", "printf"):
            texts.append(printed(before))
            known = known and all(w.static for w in before.args) and not re.search(r"[\\%]", texts[-1])
        elif not before.words and not before.assignments:
            texts += [redirect.text for redirect in before.redirects]
            known = known and not any(redirect.operator == "<" for redirect in before.redirects)
        elif before.name in ("cat", "tee") and any(r.operator in ("<<", "<<<") for r in before.redirects):
            texts += [r.text for r in before.redirects]
        elif before.name not in ("cat", "tee", "cd", "true", "yes") or (before.args and before.name == "cat"):
            known = False
    return texts, known


def printed(item: Simple) -> str:
    """What ``echo`` or ``printf`` hands to the shell behind the pipe, as far as it can be seen."""
    texts = [word.text for word in item.args]
    while texts and re.fullmatch(r"-[neE]+|--", texts[0]):
        del texts[0]
    if item.name == "printf" and texts:
        text, rest = texts[0], texts[1:]
        while rest and (found := re.search(r"%[-\d.]*[sbqdc]", text)):
            text = text[: found.start()] + rest.pop(0) + text[found.end() :]
        texts = [text, *rest]
    return " ".join(texts).replace("\\n", "\n").replace("\\t", "\t")
