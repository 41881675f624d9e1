"""Commands that stand as text in the arguments of ordinary tools: awk, sed, pagers, aliases, subscripts (S09, S18, S20, S45)."""

import re
from collections.abc import Callable, Iterator, Mapping

from .shell import Simple

# The shell evaluates `$(…)` in a subscript that one of these is given, even when it stands in single quotes (bash 5).
_SUBSCRIPTS = frozenset(
    {
        "",
        "test",
        "[",
        "[[",
        "printf",
        "read",
        "unset",
        "let",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
    }
)
_IN_SUBSCRIPT = re.compile(r"\[[^\]]*?(?:\$\((?P<round>.*)\)|`(?P<ticks>[^`]*)`)", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SED_E = re.compile(r"(?:^|[;{}\n/\d$!])\s*e\s+([^\n]+)")


def hidden(item: Simple) -> Iterator[str]:
    """Scripts that this command hands to a shell; a text that is none does no harm, since it is only judged."""
    finder = _FINDERS.get(item.name)
    if finder is not None:
        yield from finder(item)
    if item.name in _SUBSCRIPTS:
        texts = [word.text for word in item.args] + [word.text for _, word in item.assignments]
        for found in (match for text in texts for match in _IN_SUBSCRIPT.finditer(text[:2_000])):
            yield found["round"] or found["ticks"] or ""


def _awk(item: Simple) -> Iterator[str]:
    """Every text of a program that runs commands: ``system("…")``, ``print | "…"``, ``"…" | getline``."""
    for word in item.args:
        if "system" in word.text or "|" in word.text:
            yield from (match[1].replace('\\"', '"') for match in _QUOTED.finditer(word.text[:20_000]))


def _sed(item: Simple) -> Iterator[str]:
    for word in item.args:
        yield from (match[1] for match in _SED_E.finditer(word.text[:20_000]))


def _alias(item: Simple) -> Iterator[str]:
    yield from (word.text.partition("=")[2] for word in item.args)


def _option(*names: str) -> Callable[[Simple], Iterator[str]]:
    """The values of options, as the next word or behind ``=``."""

    def find(item: Simple) -> Iterator[str]:
        words = [word.text for word in item.args]
        for number, text in enumerate(words):
            name, equals, value = text.partition("=")
            if name in names:
                yield value if equals else " ".join(words[number + 1 : number + 2])

    return find


_FINDERS: Mapping[str, Callable[[Simple], Iterator[str]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    "alias": _alias,
    "man": _option("-P", "--pager", "-H", "--html"),
    **dict.fromkeys(("mapfile", "readarray"), _option("-C")),
    **dict.fromkeys(("compgen", "complete"), _option("-C")),
    "rg": _option("--pre", "--hostname-bin"),
    "sort": _option("--compress-program"),
    "tar": _option("--to-command", "-I", "--use-compress-program"),
}
