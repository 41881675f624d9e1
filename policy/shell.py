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
    [
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "number",
        "string",
        "string_content",
        "raw_string",
        "ansi_c_string",
        "concatenation",
        "simple_expansion",
        "expansion",
        "variable_name",
        "special_variable_name",
        "redirected_statement",
        "file_redirect",
        "file_descriptor",
        "heredoc_redirect",
        "heredoc_start",
        "heredoc_body",
        "heredoc_content",
        "heredoc_end",
        "herestring_redirect",
        "command_substitution",
        "process_substitution",
        "subshell",
        "compound_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "for_statement",
        "while_statement",
        "do_group",
        "case_statement",
        "case_item",
        "negated_command",
        "comment",
        "variable_assignment",
        "variable_assignments",
        "test_command",
        "test_operator",
        "binary_expression",
        "unary_expression",
        "regex",
        "extglob_pattern",
        "parenthesized_expression",
        "declaration_command",
        "unset_command",
        "brace_expression",
    ]
)
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_FORGET = frozenset(
    {"read", "mapfile", "readarray", "printf", "unset", "source", ".", "eval", "getopts", "let"}
)


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
    redirections.
    """

    words: tuple[Word, ...]
    text: str
    cwd: str | None
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    span: tuple[int, int] = (0, 0)
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
    """A parsed command line. ``broken`` = it could not be parsed as a whole; ``bomb`` = a function that multiplies itself."""

    commands: list[Simple] = field(default_factory=list[Simple])
    oddities: list[str] = field(default_factory=list[str])
    broken: str = ""
    bomb: bool = False


def parse(command: str, cwd: str = "/") -> Script:
    """``command`` taken apart; never raises. ``cwd`` is the absolute folder the line starts in."""
    if len(command) > MAX_CHARS:
        return Script(broken=f"the command is longer than {MAX_CHARS:,} characters")
    if "\0" in command:
        return Script(broken="the command holds a NUL byte")
    root = _parser().parse(command.encode("utf-8", "surrogatepass")).root_node
    walk = _Walk(cwd)
    walk.run(root)
    script = walk.script
    if root.has_error:
        script.broken = "the command cannot be parsed"
    elif any(item.name == "case" for item in script.commands):
        script.broken = (
            "a `case` in it cannot be taken apart"  # the parser took the word for a program (`$( ! case …`)
        )
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

    def __init__(self, cwd: str) -> None:
        self.script = Script()
        self.pipelines: list[list[tuple[int, int]]] = []
        self.assigned = False
        self._cwd: str | None = cwd
        self._vars: dict[str, str | None] = {}

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
        elif node.type == "redirected_statement":
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

    def _env(self) -> dict[str, str | None]:
        return {"HOME": "/home/~", "PWD": self._cwd, **self._vars}

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
                words.append(Word(text_of(child), static=not re.search(r"[$`]", text_of(child))))
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
        elif simple.name in _FORGET:
            self._vars = dict.fromkeys(self._vars)

    def _add(self, simple: Simple) -> None:
        if simple.words and re.match(
            r"\{\s", simple.words[0].text
        ):  # of two groups the grammar takes one for a word
            self.script.broken = "it holds a group inside a negated group"
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
        # Two assignments can be two branches: then the value is not known.
        self._vars[key] = known if self._vars.get(key, known) == known else None
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
        source, own = text_of(body), re.escape(text_of(name))
        calls = len(re.findall(rf"(?<![\w.-]){own}(?![\w(.-])", source))
        if calls and (calls > 1 or "&" in source) and re.search(r"[|&]", source):
            self.script.bomb = True


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


def _stage(item: Simple, stages: list[tuple[int, int]]) -> int:
    return next(
        (n for n, (start, end) in enumerate(stages) if start <= item.span[0] and item.span[1] <= end), -1
    )
