"""Commands that stand as text in the arguments of ordinary tools: awk, sed, editors, pagers, aliases, subscripts (S09, S18, S20, S45)."""

import re
from collections.abc import Callable, Iterator, Mapping

from .shell import Simple
from .variables import RUN_BY_PROGRAMS
from .words import names

# The shell evaluates `$(…)` in a subscript that one of these is given, even when it stands in single quotes (bash 5).
_SUBSCRIPTS = frozenset(
    ["", "test", "[", "[[", "printf", "read", "unset", "let", "declare", "typeset", "local", "export", "readonly", "wait", "mapfile",
     "readarray", "getopts"]
)  # fmt: skip
_IN_SUBSCRIPT = re.compile(r"\[[^\]]*?(?:\$\((?P<round>.*)\)|`(?P<ticks>[^`]*)`)", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SED_E = re.compile(r"(?:^|[;{}\n/\d$!])\s*e\s+([^\n]+)")
_RECIPE = re.compile(r"(?m)^(?:\t|[^\t\n#=]*?:[^=\n]*?;)[ @+-]*(.*)$")
_ESCAPE = re.compile(
    r"""\s*[:+]*(?:\\?!|\.?(?:shell|system)\s|EXEC:|SYSTEM:|spawn\s|exec\s|-o\s*|(?:Proxy|Local|KnownHosts)Command=|-[Sde]\s*)"""
)
_LISP = re.compile(r"shell-command|call-process|system|os\.execute")


def hidden(item: Simple) -> Iterator[str]:
    """Scripts that this command hands to a shell; a text that is none does no harm, since it is only judged."""
    finder = _FINDERS.get(item.name)
    if finder is not None:
        yield from finder(item)
    if item.name in _SUBSCRIPTS:
        texts = [word.text for word in item.args] + [word.text for _, word in item.assignments]
        for found in (match for text in texts for match in _IN_SUBSCRIPT.finditer(text[:2_000])):
            yield found["round"] or found["ticks"] or ""
    yield from (word.text for name, word in item.assignments if RUN_BY_PROGRAMS.fullmatch(name))


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


def _escapes(item: Simple) -> Iterator[str]:
    """The words of an editor, a debugger, a client: what stands behind ``!``, ``shell`` and the like."""
    texts = [word.text for word in item.args]
    texts += [line for redirect in item.redirects for line in redirect.text.splitlines()]
    for before in item.upstream:
        if before.name in ("echo", "printf"):
            texts += " ".join(word.text for word in before.args).replace("\\n", "\n").splitlines()
    for text in texts:
        escape = _ESCAPE.match(text)
        if escape is not None:
            yield text[escape.end() :]
        if _LISP.search(text):
            yield from (match[1] for match in _QUOTED.finditer(text))


def _started(item: Simple) -> Iterator[str]:
    """The command that a terminal is opened for: one word, or the rest of the words."""
    yield from (word.text for word in item.args if " " in word.text)


def _make(item: Simple) -> Iterator[str]:
    texts = [word.text.partition("=")[2] for word in item.args if "=" in word.text]
    texts += [redirect.text for redirect in item.redirects]
    texts += [word.text.replace("\\n", "\n").replace("\\t", "\t") for b in item.upstream for word in b.args]
    for text in texts:
        yield from (match[1] for match in _RECIPE.finditer(text))
        yield text if "\n" not in text and ":" not in text else ""


def _git(item: Simple) -> Iterator[str]:
    """``-c alias.x='!…'``, ``config alias.x '!…'``, ``rebase -x``, ``bisect run``, ``submodule foreach``, ``filter-branch``."""
    words = [word.text for word in item.args]
    for number, text in enumerate(words):
        following = words[number + 1 : number + 2]
        if text in ("-c", "--config"):
            yield from (value.partition("=")[2].lstrip("!") for value in following)
        elif text in ("-x", "--exec", "--extcmd") or text.endswith("-filter"):
            yield from following
        elif text.startswith(("--exec=", "--extcmd=", "!")):
            yield text.partition("=")[2] if text.startswith("--") else text[1:]
        elif text in ("foreach", "run"):
            yield " ".join(w for w in words[number + 1 :] if w != "--recursive")


def _option(*names: str) -> Callable[[Simple], Iterator[str]]:
    """The values of options, as the next word, behind ``=``, or joined to a single letter."""

    def find(item: Simple) -> Iterator[str]:
        words = [word.text for word in item.args]
        for number, text in enumerate(words):
            name, equals, value = text.partition("=")
            if name in names:
                found = value if equals else " ".join(words[number + 1 : number + 2])
                yield re.sub(r"^(?:exec|(?:Proxy|Local|KnownHosts)Command)=", "", found)
            elif text[:2] in names and not text.startswith("--"):
                yield text[2:]

    return find


_FINDERS: Mapping[str, Callable[[Simple], Iterator[str]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(
        names("vim vi nvim view gvim ex ed emacs less more most gdb lldb sqlite3 psql mysql mariadb socat expect tclsh "
         "ssh ftp xdg-open lftp irb pry"),
        _escapes,
    ),
    **dict.fromkeys(("tmux", "screen", "xterm", "gnome-terminal", "konsole"), _started),
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
    "git": _git,
    "alias": _alias,
    "man": _option("-P", "--pager", "-H", "--html"),
    **dict.fromkeys(("mapfile", "readarray"), _option("-C")),
    **dict.fromkeys(("compgen", "complete"), _option("-C")),
    "rg": _option("--pre", "--hostname-bin"),
    "sort": _option("--compress-program"),
    "tar": _option("--to-command", "-I", "--use-compress-program", "--checkpoint-action", "--rsh-command", "-F", "--info-script"),
    **dict.fromkeys(("scp", "sftp"), _option("-S", "-D", "-o")),
    "bind": lambda item: (word.text.partition(":")[2] for word in item.args),
    "rsync": _option("-e", "--rsh", "--rsync-path"),
    "split": _option("--filter"),
    "zip": _option("-TT", "--unzip-command"),
    **dict.fromkeys(("nc", "ncat", "netcat"), _option("-e", "-c", "--exec", "--sh-exec")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn"), _option("-c", "--call")),
    **dict.fromkeys(("nix", "nix-shell"), _option("--run", "--command", "-c")),
    "nodemon": _option("-x", "--exec"),
    "entr": _option("-s"),
    "cargo": _option("-s", "--shell"),
    "watchexec": _option("--shell"),
}  # fmt: skip
