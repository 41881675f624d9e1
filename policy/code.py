"""Code that an interpreter is given on the command line, by a pipe or a here-document: what can be seen in it (S29, S31, S33).

It is text to us, never parsed: strings that it hands to a shell are judged as commands, folders that it deletes as deletions.
What a program puts together while it runs is not seen; `docs/security.md` says so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .interpreters import SHELLS, STDIN, feeds, is_interpreter
from .shell import Simple

_MAX = 20_000
_GIVEN = re.compile(r"-[A-Za-z]*[ceErR]|-ne|-pe|-le|--eval|--print|-p")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|`([^`]*)`', re.DOTALL)
_ARGV = re.compile(r"""\[\s*((?:["'][^"']*["']\s*,?\s*)+)\]""")
_STARTS = re.compile(
    r"\b(?:system|popen|spawn\w*|exec\w*|subprocess|check_call|check_output|passthru|shell_exec|proc_open|qx|shell|Command)\b|`|%x"
)
_DELETES = re.compile(
    r"\b(?:unlink|unlinkSync|rmtree|removedirs|rm_rf|rm_r|remove_dir_all|remove_tree|rmSync|rmdirSync|rimraf|Remove-Item)\b"
    r"|\bos\.(?:remove|rmdir)\b|\bfs\.(?:rm|rmdir|promises\.rm)\b|\bFile\.delete\b|\.rm\(|\bDeno\.remove"
)
_EVALUATES = re.compile(
    r"(?<![.\w])(?:exec|eval)\s*\(|\beval\b\s*[<$A-Z]|\beval\s+\w+\(|\bthen\(eval\)|\biex\b|\bIEX\b|Invoke-Expression"
)
_FETCHES = re.compile(
    r"urlopen|requests\.|urllib|httpx|http\.get|https\.get|\bfetch\(|URI\.open|open-uri|LWP|file_get_contents|\biwr\b|WebRequest"
    r"|DownloadString|\bcurl\b|\bwget\b"
)
_FORKS = re.compile(
    r"fork\s+while|while\s*\(?\s*(?:1|true|True|fork)\b[^;]{0,80}fork|loop\s*(?:\{|do)[^}]{0,80}fork|for\s*\(;;\)[^;]{0,80}fork"
    r"|fork[^;]{0,40}(?:iter\(int|itertools|while)"
)
_OPENS = re.compile(r"\bopen|read|Path|listdir|scandir|walk|glob|copy|File|\bfs\b")
_DEVICE = re.compile(r"""["']/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mem\b)""")


@dataclass(frozen=True, slots=True)
class Code:
    """``text`` of the program; ``known``: it is all of it."""

    text: str
    known: bool = True

    @property
    def deletes(self) -> bool:
        """Whether it calls something that deletes files."""
        return bool(_DELETES.search(self.text))

    @property
    def evaluates(self) -> bool:
        """Whether it runs text as code."""
        return bool(_EVALUATES.search(self.text))

    @property
    def names_git(self) -> bool:
        """Whether it names a file of git's own."""
        return bool(re.search(r"""["'/]\.git/""", self.text))

    @property
    def floor(self) -> str:
        """Why it never runs; empty when nothing is against it."""
        if _FORKS.search(self.text):
            return "it is a fork bomb"
        if self.evaluates and _FETCHES.search(self.text):
            return "it runs code straight from the network"
        if _DEVICE.search(self.text):
            return "it opens a device"
        return ""

    def paths(self) -> Iterator[str]:
        """The absolute paths that it may open."""
        if _OPENS.search(self.text):
            texts = (
                next((part for part in found.groups() if part is not None), "")
                for found in _STRING.finditer(self.text)
            )
            yield from (text for text in texts if re.fullmatch(r"(?:/[\w.-]+|~)(?:/[\w.-]+)+", text))

    def commands(self) -> Iterator[str]:
        """What it hands to a shell, or deletes, as command lines."""
        texts = [
            next((part for part in found.groups() if part is not None), "")
            for found in _STRING.finditer(self.text)
        ]
        if _STARTS.search(self.text):
            yield from (re.sub(r"\\(.)", r"\1", text) for text in texts)
            yield from (
                " ".join(re.findall(r"""["']([^"']*)["']""", found[1])) for found in _ARGV.finditer(self.text)
            )
            yield from (found[1] for found in re.finditer(r"\bqw\s*[(/\[{]([^)/\]}]*)", self.text))
            yield " ".join(texts)  # exec "rm", "-rf", "/"
        if self.deletes:
            yield from (f"rm -rf {text}" for text in texts if re.fullmatch(r"[/~][\w./~*-]*", text))


def code_of(item: Simple) -> Code | None:
    """The code that this interpreter is given other than as a file; None when it is none, or is given a file."""
    if not is_interpreter(item) or item.name in SHELLS:
        return None
    given = [
        b
        for a, b in pairwise(item.args)
        if _GIVEN.fullmatch(a.text) or (a.text == "eval" and item.name == "deno")
    ]
    given += [word for word in item.args if re.match(r"--eval=|-e.{4,}", word.text, re.DOTALL)]
    if given:
        return Code("\n".join(word.text for word in given)[:_MAX], all(word.static for word in given))
    if any(not word.text.startswith("-") and word.text not in STDIN for word in item.args) or any(
        w.text in ("-m", "--version", "-V", "-v") for w in item.args
    ):
        return None
    texts, known = feeds(item)
    return Code("\n".join(texts)[:_MAX], known) if texts or not known else None
