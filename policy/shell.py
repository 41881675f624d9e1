"""A shell command line taken apart, without running any of it: every simple command, wherever it stands (tree-sitter-bash).

What cannot be read for certain is reported as such (``broken``, ``oddities``, words that are not ``static``), so that the
rules above can ask instead of guessing.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from .words import Word, heredoc_text, text_of, words_of

MAX_CHARS = 65_536  # of one command line; beyond it nothing is judged and a person must look
MAX_COMMANDS = 300
_PLAIN = frozenset(
    "program list pipeline command command_name word number string string_content raw_string ansi_c_string concatenation "
    "simple_expansion expansion variable_name special_variable_name redirected_statement file_redirect file_descriptor "
    "heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end herestring_redirect command_substitution "
    "process_substitution subshell compound_statement if_statement elif_clause else_clause for_statement while_statement do_group "
    "case_statement case_item negated_command comment variable_assignment variable_assignments test_command test_operator "
    "binary_expression unary_expression regex extglob_pattern parenthesized_expression declaration_command unset_command "
    "brace_expression".split()
)
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
# They set variables by name, or run text that may.
_SETTERS = frozenset({"read", "mapfile", "readarray", "printf", "unset", "getopts", "let", "wait", "coproc"})
_ANYTHING = frozenset({"source", ".", "eval", "local"}) - {"local"}
# Where the grammar's own words come out as programs, a line was not understood.
_RESERVED = frozenset("} fi do done then else elif esac case in ;; function".split())
_ENDLESS = re.compile(r"^(?:while\s+(?:true|:|1|\[\s*1\s*\]|\(\(\s*1\s*\)\))\s*;?|until\s+false|for\s*\(\(\s*;\s*;\s*\)\))")
_SUBSTITUTES = re.compile(r"(?<!\\)(?:\\\\)*(?:\$\((?P<round>.*)\)?|`(?P<ticks>[^`]*)`?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Redirect:
    """``operator`` as written (``>``, ``<<``, ``>&`` …); ``target`` None for here-documents, whose text is in ``text``."""

    operator: str
    target: Word | None
    text: str = ""

    @property
    def writes(self) -> bool:
        """Whether a file is opened for writing (``2>&1`` only copies a descriptor)."""
        if ">" not in self.operator:
            return False
        number = self.target is not None and self.target.static and re.fullmatch(r"\d+-?|-", self.target.text)
        return not (self.operator in (">&", "<&") and number)


@dataclass(slots=True)
class Simple:
    """One simple command. ``cwd`` is the folder it runs in as far as ``cd`` can be followed, None when it cannot.

    ``upstream`` are the commands of the same pipeline before it, ``nested`` those in substitutions in its words and
    redirections; ``loops``: it stands inside of a loop.
    """

    words: tuple[Word, ...]
    text: str
    cwd: str | None
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    span: tuple[int, int] = (0, 0)
    loops: bool = False
    upstream: list["Simple"] = field(default_factory=list["Simple"])
    nested: list["Simple"] = field(default_factory=list["Simple"])

    @property
    def name(self) -> str:
        """The program's base name; empty when there is no command word or it is not known before running."""
        first = self.words[0] if self.words else None
        return first.text.rsplit("/", 1)[-1] if first is not None and first.static and not first.glob else ""

    @property
    def args(self) -> tuple[Word, ...]:
        """The words after the command word."""
        return self.words[1:]


@dataclass(slots=True)
class Script:
    """A parsed command line. ``broken`` = it could not be parsed as a whole; ``bomb`` = a function that multiplies itself.

    ``buried``: texts of substitutions in places where the grammar does not take them apart.
    """

    commands: list[Simple] = field(default_factory=list[Simple])
    oddities: list[str] = field(default_factory=list[str])
    broken: str = ""
    bomb: bool = False
    buried: list[str] = field(default_factory=list[str])


def parse(command: str, cwd: str = "/", positional: tuple[Word, ...] = ()) -> Script:
    """``command`` taken apart; never raises. ``cwd`` is the absolute folder the line starts in, ``positional`` ``$0 $1 …``."""
    if len(command) > MAX_CHARS:
        return Script(broken=f"the command is longer than {MAX_CHARS:,} characters")
    if "\0" in command:
        return Script(broken="the command holds a NUL byte")
    root = _parser().parse(command.encode("utf-8", "surrogatepass")).root_node
    walk = _Walk(cwd, _values(root), positional)
    walk.run(root)
    script = walk.script
    if root.has_error:
        script.broken = "the command cannot be parsed"
    elif any(item.words and item.words[0].text in _RESERVED for item in script.commands):
        script.broken = "a compound command in it cannot be taken apart"  # `$( ! case …`
    elif not script.commands and not walk.assigned:
        script.broken = "no command was found"
    _link(script.commands, walk.pipelines)
    return script


def parts(command: str) -> tuple[str, ...]:
    """The source text of each outer simple command, for a person to read; one part when the line cannot be parsed."""
    script = parse(command)
    if script.broken:
        return (command,)
    inner = {id(child) for item in script.commands for child in item.nested}
    return tuple(item.text for item in script.commands if id(item) not in inner)


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


class _Walk:
    """Pre-order over the tree with an explicit stack (a line may nest thousands deep), following ``cd`` and assignments."""

    def __init__(self, cwd: str, values: dict[str, str | None], positional: tuple[Word, ...]) -> None:
        self.script = Script()
        self.pipelines: list[list[tuple[int, int]]] = []
        self.assigned = False
        self._cwd: str | None = cwd
        self._open = values  # variables that are set to more than one text somewhere in the line
        self._vars: dict[str, str | None] = {
            str(number): word.text if word.static else None for number, word in enumerate(positional)
        }
        if positional and all(word.static and not word.glob for word in positional):
            self._vars["@"] = self._vars["*"] = " ".join(word.text for word in positional[1:])
        self._loops: list[int] = []
        self._calls: dict[str, set[str]] = {}

    def run(self, root: Node) -> None:
        stack: list[Node | tuple[str | None, dict[str, str | None]]] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):  # the end of a subshell: its folder and variables end with it
                self._cwd, self._vars = node
                continue
            if node.type in ("subshell", "command_substitution", "process_substitution"):
                stack.append((self._cwd, dict(self._vars)))
            self._visit(node)
            if len(self.script.commands) > MAX_COMMANDS:
                self.script.broken = f"it has more than {MAX_COMMANDS} commands"
                return
            stack.extend(reversed(node.children))

    def _visit(self, node: Node) -> None:
        self._note_oddities(node)
        if node.type in _COMMANDS:
            self._command(node)
        elif node.type in ("function_definition", "command_substitution") and (found := _redirects(node, self._env())):
            self._add(Simple((), text_of(node), self._cwd, redirects=found))  # `$(< file)`
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            if (
                body is None or body.type != "command"
            ):  # `> file`, `{ …; } > file`: the redirection is an act of its own
                self._add(
                    Simple(
                        words=(), text=text_of(node), cwd=self._cwd, redirects=_redirects(node, self._env())
                    )
                )
        elif node.type == "pipeline":
            self.pipelines.append([(c.start_byte, c.end_byte) for c in node.children if c.is_named])
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type == "function_definition":
            self._function(node)
        elif node.type in ("for_statement", "while_statement", "c_style_for_statement"):
            self._loop(node)

    def _note_oddities(self, node: Node) -> None:
        """What is legal and yet not plain enough to be sure of."""
        if node.is_named and node.type not in _PLAIN:
            self.script.oddities.append(node.type.replace("_", " "))
        elif node.type in ("compound_statement", "test_command") and text_of(node).startswith("(("):
            self.script.oddities.append("arithmetic")  # it evaluates the text of variables
        elif node.type == "command_substitution" and re.match(r"`.*\\[`$\\]", text_of(node), re.DOTALL):
            self.script.broken = (
                "it holds back-quotes with escapes inside"  # a command in them is text to the parser
            )
        elif not node.named_children and node.is_named and node.type not in _NO_SHELL and not _quoted_body(node):
            self._bury(text_of(node))
        elif node.type == "heredoc_body" and not _quoted_body(node):
            self._bury("".join(text_of(c) for c in node.children if c.type == "heredoc_content"))
        elif node.type == "expansion" and text_of(node).endswith("@P}"):
            self.script.broken = "it evaluates the text of a variable"
        elif node.type == "expansion" and any(c.type in ("=", ":=") for c in node.children):
            self.script.oddities.append("an expansion that assigns or evaluates")

    def _bury(self, text: str) -> None:
        found = _SUBSTITUTES.search(text)
        if found:  # an inner substitution that the grammar left as text
            self.script.broken = "a substitution in it cannot be taken apart"
            self.script.buried.append((found["round"] or found["ticks"] or "").rstrip(")"))

    def _loop(self, node: Node) -> None:
        self._loops.append(node.end_byte)
        source = text_of(node)
        name = node.child_by_field_name("variable")
        if name is not None:
            key = text_of(name)
            values = [w for c in node.children_by_field_name("value") for w in words_of(c, self._env())]
            only = values[0] if len(values) == 1 else None
            self._vars[key] = only.text if only is not None and only.static and not only.glob else None
            if not key.islower():
                self.script.oddities.append("a loop over a variable of the shell")
        background = re.search(r"(?<![&>|])&(?![&>\d])", source)
        source = re.sub(r"\bsleep\s+\S+\s*&", "&", source)
        if background and _ENDLESS.match(source) and not re.search(r"\b(?:sleep|wait|read|inotifywait)\b", source):
            self.script.bomb = True

    def _env(self) -> dict[str, str | None]:
        return {"HOME": "/home/~", "PWD": self._cwd, **self._vars, **self._open}

    def _command(self, node: Node) -> None:
        env = self._env()
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        for child in node.children:
            if child.type == "variable_assignment" and node.type == "command":
                name = text_of(child).split("=", 1)[0].rstrip("+")
                value = child.child_by_field_name("value")
                found = words_of(value, env) if value is not None else []
                assignments.append((name, found[0] if len(found) == 1 else Word("", static=not found)))
            elif child.type == "command_name":
                words.extend(words_of(child.children[0], env) if child.children else [])
            elif child.type == "variable_assignment":
                words.append(_declared(child, env))
            elif not child.type.endswith("redirect"):
                words.extend(_plain_words(child, env))
        outer = node.parent
        redirects = _redirects(node, env)
        if outer is not None and outer.type == "redirected_statement":
            redirects += _redirects(outer, env)
            span = (outer.start_byte, outer.end_byte)
        else:
            span = (node.start_byte, node.end_byte)
        simple = Simple(tuple(words), text_of(node), self._cwd, tuple(assignments), redirects, span)
        self._add(simple)
        if simple.name in ("cd", "pushd", "popd"):
            self._cwd = _after_cd(simple)
        elif simple.name in _ANYTHING:
            self._vars = dict.fromkeys(self._vars)

    def _add(self, simple: Simple) -> None:
        if simple.words and re.match(
            r"\{\s", simple.words[0].text
        ):  # of two groups the grammar takes one for a word
            self.script.broken = "it holds a group inside a negated group"
        simple.loops = any(simple.span[0] < end for end in self._loops)
        self.script.commands.append(simple)

    def _assign(self, node: Node) -> None:
        self.assigned = True
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None or name.type == "subscript":
            self.script.oddities.append("array element")
            return
        if node.parent is not None and node.parent.type == "command":
            return  # only for that command
        found = words_of(value, self._env()) if value is not None else [Word("")]
        known = found[0].text if len(found) == 1 and found[0].static and "+=" not in text_of(node) else None
        key = text_of(name)
        self._vars[key] = known
        self._add(
            Simple(
                words=(),
                text=text_of(node),
                cwd=self._cwd,
                assignments=((key, found[0] if found else Word("")),),
                span=(node.start_byte, node.end_byte),
            )
        )

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        source, own = text_of(body), text_of(name)
        calls = len(re.findall(rf"(?<![\w.-]){re.escape(own)}(?![\w(.-])", source))
        self._calls[own] = set(re.findall(r"[\w:.-]+", source))
        mutual = any(own in called and other in self._calls[own] for other, called in self._calls.items() if other != own)
        if (calls and (calls > 1 or "&" in source) or mutual) and re.search(r"[|&]", source):
            self.script.bomb = True


# Leaves that the shell does not read again: quoted text, comments.
_NO_SHELL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "command_substitution"})


def _quoted_body(node: Node) -> bool:
    """Whether it is text of a here-document with a quoted delimiter."""
    if node.type not in ("heredoc_body", "heredoc_content"):
        return False
    while node.parent is not None and node.type != "heredoc_redirect":
        node = node.parent
    start = next((text_of(c) for c in node.children if c.type == "heredoc_start"), "'")
    return bool(re.search(r"""['"\\]""", start))


def _values(root: Node) -> dict[str, str | None]:
    """The variables of which the value depends on the way that is taken: set twice, read, evaluated."""
    seen: dict[str, set[str]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.named_children)
        if node.type == "variable_assignment" and not (node.parent is not None and node.parent.type == "command"):
            name, _, value = text_of(node).partition("=")
            seen.setdefault(name.rstrip("+"), set()).add(value)
            if name.endswith("+"):
                seen[name[:-1]].add("+")
        elif node.type == "for_statement" and (name_node := node.child_by_field_name("variable")) is not None:
            seen.setdefault(text_of(name_node), set()).add(str(node.start_byte))
        elif node.type in _COMMANDS and (words := text_of(node).split(None, 1)) and words[0].strip("\\\"'") in _SETTERS:
            for name in re.findall(r"[A-Za-z_]\w*", words[-1]):
                seen.setdefault(name, set()).update(("", "?"))
    opened = {name for name, values in seen.items() if len(values) > 1}
    if "IFS" in seen:
        opened |= set(seen)
    return dict.fromkeys(opened)


def _plain_words(node: Node, env: dict[str, str | None]) -> list[Word]:
    """The words of an argument; of ``[[ … ]]`` and the like, every word inside."""
    if node.type in (
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "negated_expression",
    ):
        return [word for leaf in _leaves(node) for word in words_of(leaf, env)]
    return words_of(node, env)


def _declared(node: Node, env: dict[str, str | None]) -> Word:
    """``NAME=VALUE`` of `export` and the like."""
    value = node.child_by_field_name("value")
    found = words_of(value, env) if value is not None and value.type != "array" else []
    if len(found) != 1:
        return Word(text_of(node), static=not re.search(r"[$`]", text_of(node)))
    return Word(f"{text_of(node).partition('=')[0]}={found[0].text}", found[0].static)


def _leaves(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        item = stack.pop()
        if item.type.endswith("_expression"):
            stack.extend(reversed(item.children))
        else:
            yield item


def _redirects(node: Node, env: dict[str, str | None]) -> tuple[Redirect, ...]:
    found: list[Redirect] = []
    for child in node.children:
        if child.type == "file_redirect":
            operator = next((c.type for c in child.children if not c.is_named), ">")
            targets = [w for c in child.children_by_field_name("destination") for w in words_of(c, env)]
            found.extend(Redirect(operator, target) for target in targets or [Word("", static=False)])
        elif child.type == "heredoc_redirect":
            found.append(Redirect("<<", None, heredoc_text(child)))
            found.extend(_redirects(child, env))
        elif child.type == "herestring_redirect":
            words = [w for c in child.named_children for w in words_of(c, env)]
            found.append(Redirect("<<<", None, " ".join(w.text for w in words)))
    return tuple(found)


def _after_cd(simple: Simple) -> str | None:
    operands = [word for word in simple.args if not word.text.startswith("-") or word.text == "-"]
    if simple.name == "popd" or len(operands) > 1:
        return None
    target = operands[0] if operands else Word("/home/~")
    if not target.static or target.glob or target.text == "-" or simple.cwd is None:
        return target.text if target.static and target.text.startswith("/") else None
    return os.path.normpath(f"{simple.cwd}/{target.text}" if not target.text.startswith("/") else target.text)


def _link(commands: list[Simple], pipelines: list[list[tuple[int, int]]]) -> None:
    for stages in pipelines:
        staged = [(number, item) for item in commands for number in [_stage(item, stages)] if number >= 0]
        for number, item in staged:
            item.upstream.extend(other for earlier, other in staged if earlier < number)
    for item in commands:
        start, end = item.span
        item.nested.extend(c for c in commands if c is not item and start <= c.span[0] and c.span[1] <= end)
        if any(redirect.operator == "<<" for redirect in item.redirects):  # `cat <<E | sh`: the rest stands inside
            for other in item.nested:
                other.upstream.append(item)


def _stage(item: Simple, stages: list[tuple[int, int]]) -> int:
    return next(
        (n for n, (start, end) in enumerate(stages) if start <= item.span[0] and item.span[1] <= end), -1
    )
