"""What a command starts in the end: the commands behind wrappers, and the texts that reach a shell (``sh -c``, pipes, here-documents).

An inner command is judged exactly like an outer one, so no wrapper hides anything (S12).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise

from .code import Code, code_of
from .hidden import hidden
from .interpreters import READERS, SHELLS, STDIN, feeds, is_interpreter, printed, script_word
from .shell import Script, Simple, parse
from .words import Word, operands
from .wrappers import inner, joined

_DEPTH = 8
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_TAKES_C = frozenset({"script", "su", "runuser", "flock", "sg", "capsh"})
_FD_EXECS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def layers(script: Script, depth: int = 0) -> Iterator[tuple[Simple, Script]]:
    """Every command of ``script``, outer and inner, with the script it stands in; inner scripts that are broken come as
    their own ``Script`` with a placeholder command, so that nothing is lost."""
    for item in script.commands:
        yield from _peel(item, script, depth)
    for text in script.buried:
        yield from _inside(text, Simple(words=(), text=text, cwd=None), depth)
    for text, item in _written_and_run(script):
        yield from _inside(text, item, depth, guessed=not item.name or item.name not in SHELLS)


def _written_and_run(script: Script) -> Iterator[tuple[str, Simple]]:
    """Scripts that the line itself writes and then runs: ``cat > x.sh <<E … E`` and `sh x.sh`."""
    written: dict[str, str] = {}
    for item in script.commands:
        run = next(
            (word for word in (*item.words[:1], *operands(item.args)[:1]) if _name(word) in written), None
        )
        if run is not None and (run is item.words[0] or item.name in SHELLS or item.name in READERS):
            yield written[_name(run)], item
        elif run is not None and is_interpreter(item):
            yield from ((text, item) for text in Code(written[_name(run)]).commands())
        texts = [redirect.text for redirect in item.redirects if redirect.operator in ("<<", "<<<")]
        texts += [printed(item)] if item.name in ("echo", "printf") else []
        targets = [
            redirect.target for redirect in item.redirects if redirect.writes and redirect.target is not None
        ]
        targets += operands(item.args) if item.name == "tee" else []
        written.update((_name(target), text) for target in targets for text in texts)


def _name(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]


def _peel(item: Simple, script: Script, depth: int) -> Iterator[tuple[Simple, Script]]:
    yield item, script
    if depth >= _DEPTH:
        yield replace(item, words=(Word("", static=False),)), script
        return
    for found in _inner_commands(item):
        yield from _peel(found, script, depth + 1)
    for text in _inner_scripts(item):
        yield from _inside(text, item, depth)
    code = code_of(item)
    for text in chain(hidden(item), code.commands() if code is not None else ()):
        yield from _inside(text, item, depth, guessed=True)


def _inside(text: str, item: Simple, depth: int, *, guessed: bool = False) -> Iterator[tuple[Simple, Script]]:
    """The commands of an inner script; ``guessed``: it may be no script at all, so that it need not be one."""
    if not text.strip():
        return
    name = item.name if item.words else ""
    inside = parse(text, item.cwd or "/", _positional(item) if name in SHELLS else ())
    if guessed:
        inside.broken = ""
    for found in inside.commands:
        if item.cwd is None and found.cwd == "/":
            found.cwd = None
        found.upstream.extend(item.upstream)
    if inside.broken or inside.bomb or inside.oddities:
        yield Simple(words=(), text=text[:200], cwd=item.cwd), inside
    yield from layers(inside, depth + 1)


def _positional(item: Simple) -> tuple[Word, ...]:
    """What ``$0 $1 …`` are in ``sh -c TEXT $0 $1 …``."""
    word = script_word(item)
    return item.args[item.args.index(word) + 1 :] if word is not None and word in item.args else ()


def _inner_commands(item: Simple) -> Iterator[Simple]:
    if item.name in ("find", "fd", "fdfind"):
        starts = _EXECS if item.name == "find" else _FD_EXECS
        for number, word in enumerate(item.args):
            if word.text in starts:
                rest = item.args[number + 1 :]
                end = next((i for i, w in enumerate(rest) if w.text in (";", "+", "\\;")), len(rest))
                yield replace(item, words=rest[:end])
        return
    found = inner(item)
    if found is None:
        return
    if item.name != "xargs":
        yield found
        return
    texts = [text for text in feeds(item)[0] if text.strip()]
    yield from (_with_input(item, found, text) for text in texts or [""])


def _with_input(item: Simple, found: Simple, fed: str) -> Simple:
    """What ``xargs`` makes of a text that it is fed; empty: it cannot be seen."""
    mark = next((b.text for a, b in pairwise(item.args) if a.text == "-I"), "")
    mark = mark or next((w.text[2:] for w in item.args if re.match(r"-I.", w.text)), "")
    if not mark:
        return replace(found, words=(*found.words, *(Word(piece) for piece in fed.split())))
    words = (
        Word(w.text.replace(mark, fed.strip() or mark), w.static and (bool(fed) or mark not in w.text))
        for w in found.words
    )
    return replace(found, words=tuple(words))


def _inner_scripts(item: Simple) -> Iterator[str]:
    name = item.name
    yield from _piped(item)
    if name in SHELLS or name in READERS:
        yield from (printed(inside) for inside in item.nested if inside.name in ("echo", "printf"))
    elif any(inside.name in SHELLS for inside in item.nested) and name in ("echo", "printf"):
        yield printed(item)  # `echo … > >(sh)`
    yield joined(item)
    match name:
        case "eval":
            yield " ".join(word.text for word in item.args if word.text != "--")
        case "env":
            yield from _split_string(item)
        case "trap":
            yield next((word.text for word in item.args if not word.text.startswith("-")), "")
        case _:
            return


def _piped(item: Simple) -> Iterator[str]:
    """The script of a shell: the text after ``-c``, else what its standard input is given."""
    name = item.name
    if name in SHELLS or name in _TAKES_C:
        word = script_word(item) if name in SHELLS else _dash_c(item)
        if word is None:
            yield from feeds(item)[0]
        elif name not in SHELLS or _has_c(item):
            yield word.text
    elif name in READERS and any(word.text in STDIN for word in item.args):
        yield from feeds(item)[0]
    elif name in ("ssh", "at", "batch", "crontab"):
        yield from (re.sub(r"(?m)^(?:[\d*/,-]+\s+){5}|^@\w+\s+", "", text) for text in feeds(item)[0])


def _split_string(item: Simple) -> Iterator[str]:
    for number, word in enumerate(item.args):
        found = re.match(r"-[A-Za-z]*S(.*)|--split-string=(.*)", word.text, re.DOTALL)
        if found:
            rest = " ".join(w.text for w in item.args[number + 1 :])
            yield f"{found[1] or found[2] or ''} {rest}"
        elif word.text == "--split-string":
            yield " ".join(w.text for w in item.args[number + 1 :])


def _has_c(item: Simple) -> bool:
    return any(
        word.text.startswith("--command") or re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word.text)
        for word in item.args
    )


def _dash_c(item: Simple) -> Word | None:
    for number, word in enumerate(item.args):
        if (re.fullmatch(r"-[A-Za-z]*c", word.text) or word.text == "--command") and number + 1 < len(
            item.args
        ):
            return item.args[number + 1]
        if word.text.startswith("--command="):
            return Word(word.text.partition("=")[2], word.static)
    return None
