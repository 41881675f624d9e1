"""A shell command line taken apart, without running any of it: every simple command, wherever it stands (tree-sitter-bash).

What cannot be read for certain is reported as such (``broken``, ``oddities``, words that are not ``static``), so that the
rules above can ask instead of guessing.
"""

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from .syntax import (
    COMMANDS,
    NO_SHELL,
    Redirect,
    declared,
    left_as_text,
    open_variables,
    plain_words,
    quoted_body,
    redirects_of,
    words_behind,
)
from .words import Word, names, text_of, words_of

MAX_CHARS = 65_536  # of one command line; beyond it nothing is judged and a person must look
MAX_COMMANDS = 300
MAX_WORDS = 2_000  # of one command
_PLAIN = names(
    "program list pipeline command command_name word number string string_content raw_string ansi_c_string concatenation "
    "simple_expansion expansion variable_name special_variable_name redirected_statement file_redirect file_descriptor "
    "heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end herestring_redirect command_substitution "
    "process_substitution subshell compound_statement if_statement elif_clause else_clause for_statement while_statement do_group "
    "case_statement case_item negated_command comment variable_assignment variable_assignments test_command test_operator "
    "binary_expression unary_expression regex extglob_pattern parenthesized_expression declaration_command unset_command "
    "brace_expression"
)
_ANYTHING = frozenset({"source", ".", "eval"})
# Where the grammar's own words come out as programs, a line was not understood.
_RESERVED = names("} fi do done then else elif esac case in ;; function")
_ENDLESS = re.compile(
    r"^(?:while\s+(?:true|:|1|\[\s*1\s*\]|\(\(\s*1\s*\)\))\s*;?|until\s+false|for\s*\(\(\s*;\s*;\s*\)\))"
)
_SUBSTITUTES = re.compile(r"(?<!\\)(?:\\\\)*(?:\$\((?P<round>.*)\)?|`(?P<ticks>[^`]*)`?)", re.DOTALL)


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
    source = command.encode("utf-8", "surrogatepass")
    root = _parser().parse(source).root_node
    walk = _Walk(source, cwd, open_variables(root), positional)
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


@lru_cache(maxsize=8)
def parsed(command: str, cwd: str) -> Script:
    """The same, once for all layers that judge a line: what it gives is shared, so nobody changes it."""
    return parse(command, cwd)


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

    def __init__(
        self, source: bytes, cwd: str, values: dict[str, str | None], positional: tuple[Word, ...]
    ) -> None:
        self._source = source
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
        if node.type in COMMANDS:
            self._command(node)
        elif node.type in ("function_definition", "command_substitution") and (
            found := redirects_of(node, self._env())
        ):
            self._add(Simple((), text_of(node), self._cwd, redirects=found))  # `$(< file)`
        if node.type == "redirected_statement":
            self._group(node)
        elif node.type == "pipeline":
            stages = [_first_of_list(child) for child in node.named_children]
            self.pipelines.append([(stage.start_byte, stage.end_byte) for stage in stages])
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type == "function_definition":
            self._function(node)
        elif node.type in ("for_statement", "while_statement", "c_style_for_statement"):
            self._loop(node)

    def _group(self, node: Node) -> None:
        """`> file`, `{ …; } > file`: the redirection is an act of its own, and what stands inside reads from it."""
        body = node.child_by_field_name("body")
        last = _last(body) if body is not None else node
        if last.type not in COMMANDS:
            span = (last.start_byte, node.end_byte)
            self._add(
                Simple((), text_of(node), self._cwd, redirects=redirects_of(node, self._env()), span=span)
            )

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
        elif (
            not node.named_children and node.is_named and node.type not in NO_SHELL and not quoted_body(node)
        ):
            self._bury(text_of(node))
        elif node.type == "heredoc_body" and not quoted_body(node):
            self._bury(left_as_text(node))
        elif node.type == "heredoc_start" and re.search(r"[;&|()<>]", text_of(node)):
            self.script.broken = "where a here-document in it ends is not certain"
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
        if (
            background
            and _ENDLESS.match(source)
            and not re.search(r"\b(?:sleep|wait|read|inotifywait)\b", source)
        ):
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
                words.append(declared(child, env))
            elif not child.type.endswith("redirect"):
                words.extend(plain_words(child, env))
        outer = _redirected(node)
        redirects = redirects_of(node, env) + (redirects_of(outer, env) if outer is not None else ())
        words += words_behind(node, env) + (words_behind(outer, env) if outer is not None else [])
        whole = outer is not None and outer.child_by_field_name("body") == node
        span = (
            outer.start_byte if outer is not None and whole else node.start_byte,
            node.end_byte if outer is None else outer.end_byte,
        )
        text = self._source[span[0] : span[1]].decode("utf-8", "replace").strip()
        simple = Simple(tuple(words), text, self._cwd, tuple(assignments), redirects, span)
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
        if len(simple.words) > MAX_WORDS:
            self.script.broken = f"a command in it has more than {MAX_WORDS:,} words"
            simple.words = simple.words[:MAX_WORDS]
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
        mutual = any(
            own in called and other in self._calls[own]
            for other, called in self._calls.items()
            if other != own
        )
        if ((calls and (calls > 1 or "&" in source)) or mutual) and re.search(r"[|&]", source):
            self.script.bomb = True


_AROUND = ("list", "pipeline", "negated_command")


def _first_of_list(node: Node) -> Node:
    """`a | b && c` comes as `a | (b && c)`: only ``b`` reads the pipe."""
    while node.type == "list" and node.named_children:
        node = node.named_children[0]
    return node


def _redirected(node: Node) -> Node | None:
    """The statement that gives the command its redirections. Those of the last of `a && b > c` stand around all of them."""
    outer = node.parent
    while outer is not None and outer.type in _AROUND and outer.end_byte == node.end_byte:
        outer = outer.parent
    return outer if outer is not None and outer.type == "redirected_statement" else None


def _last(node: Node) -> Node:
    """What the redirections of a statement belong to."""
    while node.type in _AROUND and node.named_children:
        node = node.named_children[-1]
    return node


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
        # `cat <<E | sh`: the rest stands inside; `{ sh; } < x`: they read what the group is given
        fed = any(redirect.operator.startswith("<") for redirect in item.redirects)
        if fed and (not item.words or any(redirect.operator == "<<" for redirect in item.redirects)):
            for other in item.nested:
                other.upstream.append(item)


def _stage(item: Simple, stages: list[tuple[int, int]]) -> int:
    """The part of the pipeline that the command begins in; its redirections may lie behind the whole pipeline."""
    return next((n for n, (start, end) in enumerate(stages) if start <= item.span[0] < end), -1)
