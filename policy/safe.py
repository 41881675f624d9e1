"""Commands that only read: the curated list that passes without asking in ``semi-auto`` (APR-01).

A list of *allowed* flags, never of forbidden ones: git and GNU tools take abbreviations, and new flags appear (S15, S20).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .gitwork import git_words
from .shell import Script, Simple
from .words import Word, operands


@dataclass(frozen=True, slots=True)
class _Flags:
    """Allowed letters of short clusters and allowed long options (exact), and how many operands there may be."""

    short: str = ""
    long: str = ""
    operands: int = 10_000

    def admit(self, args: tuple[Word, ...]) -> bool:
        for word in args:
            text = word.text
            if text == "--":
                break
            if text.startswith("--"):
                if text[2:].split("=", 1)[0] not in self.long.split():
                    return False
            elif text.startswith("-") and len(text) > 1 and not re.fullmatch(r"-\d+", text):
                letters = re.match(r"-([A-Za-z]*)", text)
                if (
                    letters is None
                    or not letters[1]
                    or any(letter not in self.short for letter in letters[1])
                ):
                    return False
        return len(operands(args)) <= self.operands


_LOG = (
    "oneline stat name-only name-status graph all decorate no-decorate pretty format abbrev-commit since until after before "
    "author committer grep follow patch cached staged no-color color word-diff numstat shortstat summary diff-filter unified "
    "ignore-all-space ignore-space-change ignore-blank-lines first-parent merges no-merges reverse max-count skip no-patch raw "
    "minimal histogram patience find-renames find-copies dirstat check exit-code quiet relative date branches tags remotes "
    "left-right cherry-pick merge-base no-ext-diff no-textconv topo-order date-order no-renames compact-summary no-prefix count"
)
_TABLE: dict[str, _Flags] = {
    "ls": _Flags("aAbBcCdfFgGhHiIklLmnNopqQrRsStTuUvwxXZ", "all almost-all color human-readable recursive reverse sort time size "
                 "directory classify full-time group-directories-first inode si time-style"),
    "cat": _Flags("AbeEnstTuv", "number show-all show-ends show-tabs squeeze-blank"),
    "tac": _Flags(),
    "rev": _Flags(),
    "nl": _Flags("bdfhilnpsvw"),
    "head": _Flags("cnqvz", "lines bytes quiet verbose"),
    "tail": _Flags("cnqvz", "lines bytes quiet verbose"),
    "wc": _Flags("clmLw", "lines words bytes chars max-line-length"),
    "pwd": _Flags("LP"),
    "whoami": _Flags(),
    "nproc": _Flags("", "all"),
    "uname": _Flags("amnoprsv", "", 0),
    "file": _Flags("bihLNz0", "brief mime mime-type mime-encoding"),
    "stat": _Flags("cfLt", "format printf terse dereference"),
    "du": _Flags("abcdhkmsSxL", "human-readable summarize max-depth total all apparent-size exclude"),
    "df": _Flags("ahHiklmPTtx", "human-readable type"),
    "basename": _Flags("asz"),
    "dirname": _Flags("z"),
    "realpath": _Flags("emsLPqz", "relative-to relative-base"),
    "readlink": _Flags("femnqsvz"),
    "which": _Flags("a"),
    "type": _Flags("aptfP"),
    "tree": _Flags("adfhDILPpsugiFC"),
    "cut": _Flags("bcdfnsz", "delimiter fields characters bytes complement output-delimiter only-delimited"),
    "tr": _Flags("cCdst", "delete squeeze-repeats complement"),
    "sort": _Flags("bcCdfghikMnrRstuVz", "numeric-sort reverse unique key field-separator human-numeric-sort version-sort stable"),
    "uniq": _Flags("cdDfisuwz", "count repeated unique ignore-case", 1),
    "comm": _Flags("123z"),
    "paste": _Flags("dsz"),
    "fold": _Flags("bsw"),
    "column": _Flags("tscx"),
    "seq": _Flags("fsw"),
    "diff": _Flags("abBcdEiNpqrstTuUwWyZ", "brief unified recursive color ignore-all-space ignore-case side-by-side stat "
                   "new-file exclude report-identical-files suppress-common-lines"),
    "cmp": _Flags("bilns"),
    "md5sum": _Flags("bct"),
    "sha1sum": _Flags("bct"),
    "sha256sum": _Flags("bct"),
    "cksum": _Flags(),
    "od": _Flags("AtcxNjvdo"),
    "hexdump": _Flags("Cnsv"),
    "strings": _Flags("antes"),
    "xxd": _Flags("blcgsupi", "", 1),
    "ps": _Flags("aAefFlLjpuUxow", "forest no-headers sort pid format"),
    "grep": _Flags("ABCEFGHILPRTUVZabceefhilmnoqrsvwxyz", "include exclude exclude-dir color colour count files-with-matches "
                   "files-without-match ignore-case invert-match line-number recursive word-regexp extended-regexp fixed-strings "
                   "perl-regexp regexp max-count only-matching after-context before-context context no-filename with-filename "
                   "quiet text null"),
    "rg": _Flags("ABCEFHILMNPSTUVabcefgGhilmnopqrstuvwx", "glob iglob type type-not count count-matches files files-with-matches "
                 "files-without-match ignore-case smart-case case-sensitive fixed-strings line-number no-line-number hidden "
                 "no-ignore no-heading heading color colors context after-context before-context max-count max-depth only-matching "
                 "word-regexp invert-match regexp multiline pcre2 json stats sort sortr text vimgrep column with-filename "
                 "no-filename type-list null trim replace passthru quiet max-columns"),
    "jq": _Flags("acCeSMrsnj", "raw-output compact-output exit-status slurp sort-keys null-input tab indent arg argjson"),
    "true": _Flags(),
    "false": _Flags(),
    "sleep": _Flags(operands=1),
    "cd": _Flags(operands=1),
}  # fmt: skip
_GIT: dict[str, _Flags] = {
    "status": _Flags("sbuvz", "short branch porcelain long untracked-files ignored show-stash ahead-behind no-renames column"),
    "diff": _Flags("pnuUswbMCzqSGRiDBIW", _LOG),
    "log": _Flags("pnuUswbMCzqSGLimcgEFPDB", _LOG),
    "show": _Flags("pnuUswbMCzqSGmcs", _LOG),
    "shortlog": _Flags("nsec", _LOG),
    "rev-list": _Flags("n", _LOG),
    "ls-files": _Flags("cdmostuzv", "cached deleted modified others stage exclude-standard error-unmatch full-name"),
    "ls-tree": _Flags("rdtlz", "name-only name-status full-name full-tree long"),
    "cat-file": _Flags("tpse"),
    "blame": _Flags("LlswtefnMCbcp", "porcelain date line-porcelain show-email"),
    "rev-parse": _Flags("q", "show-toplevel abbrev-ref short verify is-inside-work-tree git-dir show-prefix show-cdup symbolic-full-name"),
    "describe": _Flags("", "tags always dirty long abbrev all match contains"),
    "merge-base": _Flags("a", "is-ancestor all octopus fork-point"),
    "for-each-ref": _Flags("", "format sort count contains merged points-at"),
    "name-rev": _Flags("", "name-only tags"),
    "branch": _Flags("arv", "list all remotes verbose show-current contains merged no-merged format sort no-color", 0),
    "tag": _Flags("ln", "list sort format contains merged", 0),
    "remote": _Flags("v", "verbose", 0),
    "grep": _Flags("nilLwEFGPchHIqveABC", "line-number ignore-case files-with-matches count word-regexp extended-regexp "
                   "fixed-strings perl-regexp cached untracked name-only heading break show-function and or not"),
}  # fmt: skip
_GIT_PAIRS = {
    ("stash", "list"),
    ("worktree", "list"),
    ("reflog", "show"),
    ("config", "--get"),
    ("config", "--list"),
    ("config", "-l"),
}
_ANY_WORDS = frozenset({"echo", ":", "printf"})  # they print or drop their words, whatever they are
_GLOB_FIRST = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "file",
        "stat",
        "du",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "echo",
        "printf",
    ]
)
_FIND = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-type",
        "-maxdepth",
        "-mindepth",
        "-size",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-newer",
        "-not",
        "-o",
        "-a",
        "-and",
        "-or",
        "!",
        "(",
        ")",
        "-print",
        "-print0",
        "-empty",
        "-prune",
        "-regex",
        "-iregex",
        "-regextype",
        "-perm",
        "-user",
        "-group",
        "-links",
        "-L",
        "-H",
        "-P",
        "-ls",
        "-printf",
        "-xdev",
        "-mount",
        "-follow",
        "-depth",
        "-daystart",
        "-readable",
        "-writable",
        "-executable",
        "-true",
        "-false",
        "-quit",
        "-samefile",
        "-inum",
    ]
)
_SED_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/I?)"
_SED = re.compile(
    rf"(?:{_SED_ADDRESS}(?:[,~]\+?{_SED_ADDRESS})?)?\s*!?\s*"
    r"(?:[pdq=lPDnNgGhHx]|s([/|#,:@!%])(?:\\.|(?!\1)[^\\\n])*\1(?:\\.|(?!\1)[^\\\n])*\1[gpiI0-9]*)\s*"
)
_AWK_ACTS = re.compile(
    r"system|getline|close|fflush|printf?\s*[^{}]*[>|]|[|>@]|\bENVIRON\b|\binclude\b|\bload\b"
)
_VERSIONS = frozenset(
    [
        "python",
        "python3",
        "node",
        "npm",
        "npx",
        "cargo",
        "rustc",
        "go",
        "java",
        "ruby",
        "gcc",
        "g++",
        "clang",
        "make",
        "cmake",
        "pip",
        "uv",
        "ruff",
        "pytest",
        "git",
        "rg",
    ]
)
_SINKS = ("/dev/null", "/dev/stderr", "/dev/stdout")
_ENVIRONMENT = frozenset({"LC_ALL", "LANG", "NO_COLOR", "TERM", "COLUMNS", "LINES", "TZ", "CI"})


def read_only(script: Script, item: Simple) -> bool:
    """Whether this command is known to change nothing and to start nothing."""
    if script.broken or script.oddities or not plain_surroundings(item):
        return False
    if not item.words:
        return True
    if not item.name or item.words[0].text != item.name:
        return False  # ./sed is not sed (S14)
    if item.name in _ANY_WORDS:
        return not (item.name == "printf" and item.args and item.args[0].text.startswith("-"))
    # A file may be named like a flag, and an unknown word may be one.
    named_like_flag = item.name not in _GLOB_FIRST and any(
        w.glob and w.text[:1] in ("*", "?", "[") for w in item.args
    )
    known = all(
        word.static or word.text.startswith("<(") for word in item.args
    )  # `<(…)` is a file in /dev/fd
    return known and not named_like_flag and _known(item.name, item)


def plain_surroundings(item: Simple) -> bool:
    """Whether neither an assignment nor a redirection around the command can change what it does or write a file."""
    for name, _ in item.assignments:
        if name not in _ENVIRONMENT and (item.words or not name.islower()):
            return False
    return all(
        not r.writes or (r.target is not None and r.target.static and r.target.text in _SINKS)
        for r in item.redirects
    )


def _known(name: str, item: Simple) -> bool:
    texts = [word.text for word in item.args]
    if name in _VERSIONS and texts in (["--version"], ["-V"], ["version"]):
        return True
    special = _SPECIAL.get(name)
    if special is not None:
        return special(item, texts)
    return name in _TABLE and _TABLE[name].admit(item.args)


def _find(_item: Simple, texts: list[str]) -> bool:
    return all(t in _FIND or not t.startswith(("-", "(", "!")) or re.fullmatch(r"-\d+|-", t) for t in texts)


def _test(_item: Simple, texts: list[str]) -> bool:
    """An array index in a word is evaluated, even in single quotes (S09)."""
    return not {"-v", "-R"} & set(texts) and not any("[" in t for t in texts if t not in ("[", "[["))


def _read(_item: Simple, texts: list[str]) -> bool:
    """Into variables of the line's own: those of the shell and of programs have capital letters."""
    return all(re.fullmatch(r"-r|[a-z_][a-z0-9_]*", text) for text in texts)


def _jq(item: Simple, texts: list[str]) -> bool:
    """A program can print the environment, which holds keys."""
    return _TABLE["jq"].admit(item.args) and not any(re.search(r"\$ENV|\benv\b", text) for text in texts)


def _ps(item: Simple, texts: list[str]) -> bool:
    """`e` shows the environment of processes."""
    return _TABLE["ps"].admit(item.args) and not any(
        "e" in text for text in texts if not text.startswith("-")
    )


def _date(_item: Simple, texts: list[str]) -> bool:
    return all(
        t.startswith("+") or t in ("-u", "--utc", "-R", "-I", "-Iseconds", "--iso-8601") for t in texts
    )


def _git(item: Simple, _texts: list[str]) -> bool:
    before, words = git_words(item)
    if not words or any(option not in ("--no-pager", "-P", "--no-optional-locks") for option in before):
        return False
    if tuple(words[:2]) in _GIT_PAIRS:
        return not any(t.startswith("-") for t in words[2:]) and (words[0] != "reflog" or len(words) <= 3)
    flags = _GIT.get(words[0])
    return flags is not None and words[-1] != "--" and flags.admit(tuple(Word(text) for text in words[1:]))


def _sed(_item: Simple, texts: list[str]) -> bool:
    scripts: list[str] = []
    files = 0
    rest = list(texts)
    while rest:
        text = rest.pop(0)
        if text in ("-e", "--expression"):
            scripts.append(rest.pop(0) if rest else "")
        elif text.startswith("-") and len(text) > 1:
            if not re.fullmatch(r"-[nErsuz]+|--quiet|--silent|--regexp-extended", text):
                return False
        else:
            files += 1
            if files == 1 and not any(t in ("-e", "--expression") for t in texts):
                scripts.append(text)
    return bool(scripts) and all(_sed_script(script) for script in scripts)


def _sed_script(script: str) -> bool:
    if _SED.fullmatch(script):
        return True
    return all(_SED.fullmatch(piece) for piece in re.split(r"[;\n]", script) if piece.strip()) and bool(
        script.strip()
    )


def _awk(_item: Simple, texts: list[str]) -> bool:
    rest = list(texts)
    while rest and rest[0].startswith("-"):
        if not re.fullmatch(r"-[Fv].*", rest[0]):
            return False
        del rest[: 2 if rest[0] in ("-F", "-v") else 1]
    # `$1 > 5 {print}` compares: what stands before the first brace, or without any, prints to nowhere.
    program = re.sub(r"^[^{]*", lambda found: found[0].replace(">", " "), rest[0]) if rest else ""
    return bool(rest) and not _AWK_ACTS.search(program) and not any("=" in text for text in rest[1:])


_SPECIAL: dict[str, Callable[[Simple, list[str]], bool]] = {
    "git": _git,
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "test": _test,
    "[": _test,
    "[[": _test,
    "date": _date,
    "read": _read,
    "jq": _jq,
    "ps": _ps,
}
