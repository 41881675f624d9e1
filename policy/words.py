"""Shell words: what text a word stands for once quotes, escapes, braces and known variables are undone."""

import re
from dataclasses import dataclass
from itertools import islice

from tree_sitter import Node

_BRACES = re.compile(r"^(.*?)\{([^{}]*)\}(.*)$", re.DOTALL)
_BARE = frozenset(
    ["word", "number", "variable_name", "special_variable_name", "test_operator", "regex", "extglob_pattern"]
)
_MAX_BRACES = 64
_TEMPORARY = (
    "/dev/fd/255"  # stands for a fresh file or folder, which nobody else has: neither inside nor outside
)
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_IN_QUOTES = re.compile(r'\\([$`"\\\n])')


@dataclass(frozen=True, slots=True)
class Word:
    """``text`` after expansion; ``static`` = it is known before running; ``glob`` = it holds an unquoted wildcard."""

    text: str
    static: bool = True
    glob: bool = False


def names(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


def has_flag(args: tuple[Word, ...], letters: str, *long: str) -> bool:
    """Whether a short cluster holds one of ``letters`` or a long option is a beginning of one of ``long`` (getopt allows it)."""
    for word in args:
        text = word.text
        if text == "--":
            return False
        if text.startswith("--") and len(text) > 2:
            stem = text.split("=", 1)[0]
            if any(name.startswith(stem) for name in long):
                return True
        elif text.startswith("-") and any(letter in text[1:] for letter in letters):
            return True
    return False


def operands(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words that are no options; all of them after ``--``."""
    found: list[Word] = []
    closed = False
    for word in args:
        if closed or not word.text.startswith("-") or word.text == "-":
            found.append(word)
        closed = closed or word.text == "--"
    return tuple(found)


def text_of(node: Node) -> str:
    """The source text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def words_of(node: Node, env: dict[str, str | None]) -> list[Word]:
    """The words that ``node`` becomes: usually one; several for braces and for an unquoted variable with blanks."""
    word, braces = _read(node, env)
    if (
        node.type in ("simple_expansion", "expansion", "command_substitution") and word.static
    ):  # unquoted: the shell splits it
        return [Word(piece, glob=bool(re.search(r"[*?\[]", piece))) for piece in word.text.split()]
    if not braces:
        return [word]
    texts = list(islice(_expand(word.text), _MAX_BRACES + 1))
    static = word.static and len(texts) <= _MAX_BRACES
    return [Word(text, static, word.glob) for text in texts[:_MAX_BRACES]]


def heredoc_text(node: Node) -> str:
    """The body of a here-document."""
    return "".join(text_of(child) for child in node.children if child.type == "heredoc_body")


def _read(node: Node, env: dict[str, str | None]) -> tuple[Word, bool]:
    """The word and whether unquoted braces are in it."""
    kind = node.type
    if kind in _BARE:
        return _bare(text_of(node))
    if kind == "concatenation":
        return _joined(node, env)
    match kind:
        case "raw_string":
            word = Word(text_of(node)[1:-1])
        case "ansi_c_string":
            word = _ansi(text_of(node)[2:-1])
        case "string" | "translated_string":
            word = _quoted(node, env)
        case "simple_expansion" | "expansion":
            word = _variable(node, env)
        case "command_substitution":
            word = _printed(text_of(node), env)
        case _:
            # Punctuation ([[, ]], !) stands for itself; substitutions and arithmetic are known only when they run.
            word = Word(text_of(node), static=not node.is_named)
    return word, False


def _bare(source: str) -> tuple[Word, bool]:
    naked = _ESCAPED.sub("", source)
    text = _ESCAPED.sub(lambda found: "" if found[1] == "\n" else found[1], source)
    if source == "~" or source.startswith("~/"):
        text = f"/home/~{text[1:]}"
    elif re.match(r"~[A-Za-z_][\w-]*(/|$)", source):
        text = f"/home/{text[1:]}"
    braces = bool(re.search(r"\{[^}]*(,|\.\.)[^{]*\}", naked))
    return Word(text, glob=bool(re.search(r"[*?]|\[", naked)) and source not in ("[", "[[")), braces


def _ansi(source: str) -> Word:
    try:
        text = source.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return Word(source, static=False)
    return Word(text, static="\\c" not in source)


def _quoted(node: Node, env: dict[str, str | None]) -> Word:
    """A double-quoted string. Blanks between expansions are no nodes, so text is taken from the gaps as well."""
    raw = node.text or b""
    pieces: list[str] = []
    static = True
    position = node.start_byte + (2 if raw.startswith(b"$") else 1)

    def literal(start: int, end: int) -> str:
        part = raw[start - node.start_byte : end - node.start_byte].decode("utf-8", "replace")
        return _IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], part)

    for child in node.children:
        if child.type in ('"', '$"', "string_content", "string"):
            continue
        pieces.append(literal(position, child.start_byte))
        word, _ = _read(child, env)
        static = static and word.static
        pieces.append(word.text)
        position = child.end_byte
    pieces.append(literal(position, node.end_byte - 1))
    return Word("".join(pieces), static)


def _variable(node: Node, env: dict[str, str | None]) -> Word:
    source = text_of(node)
    found = re.fullmatch(r"\$\{?([A-Za-z_]\w*|\d|[@*])\}?", source)
    # Whatever is cut off or put in its place when it is empty: the home folder stays the home folder.
    found = found or re.match(r"\$\{(HOME|PWD)(?::?[-=?]|%|#)", source)
    value = env.get(found[1]) if found else None
    return Word(source, static=False) if value is None else Word(value)


def _printed(source: str, env: dict[str, str | None]) -> Word:
    """A substitution of which the outcome is plain: ``$(pwd)``, ``$(echo x)``, ``$(which rm)``."""
    inside = source[2:-1] if source.startswith("$(") else source.strip("`")
    known = re.fullmatch(r"\s*(?:echo|printf|which|command -v|type -[pP])\s+([\w./@%+:, -]+?)\s*", inside)
    if known and not known[1].startswith("-"):
        return Word(" ".join(known[1].split()))
    if re.fullmatch(r"\s*mktemp(?:\s+-[dqu]+)?\s*", inside):
        return Word(_TEMPORARY)
    here = env.get("PWD") if inside.strip() == "pwd" else None
    return Word(source, static=False) if here is None else Word(here)


def _joined(node: Node, env: dict[str, str | None]) -> tuple[Word, bool]:
    texts: list[str] = []
    bare: list[str] = []
    static, glob = True, False
    for number, child in enumerate(node.children):
        word, _ = _read(child, env)
        # A tilde counts only at the very beginning of the whole word.
        text = (
            text_of(child)
            if number and child.type == "word" and text_of(child).startswith("~")
            else word.text
        )
        texts.append(text)
        bare.append(
            _ESCAPED.sub("", text_of(child)) if child.type in ("word", "{", "}", "brace_expression") else ""
        )
        static, glob = static and word.static, glob or word.glob
    braces = bool(re.search(r"\{[^}]*(,|\.\.)[^{]*\}", "".join(bare)))
    glob = glob or any(child.type in ("word", "[") and text_of(child) == "[" for child in node.children)
    return Word("".join(texts), static or braces, glob), braces


def _expand(text: str) -> list[str]:
    """Brace lists, inner ones first to last; a sequence (``{a..z}``) is left as it is."""
    found: list[str] = []
    queue = [text]
    while queue and len(found) + len(queue) <= _MAX_BRACES:
        item = queue.pop(0)
        split = _BRACES.match(item)
        if split is None or "," not in split[2]:
            found.append(item)
            continue
        queue.extend(f"{split[1]}{option}{split[3]}" for option in split[2].split(","))
    return found + queue
