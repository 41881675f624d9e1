"""Pieces of a shell's syntax tree: redirections, the words of a command, variables of which the value cannot be known."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .words import Word, heredoc_text, text_of, words_of

COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
# They set variables by name, or run text that may.
_SETTERS = frozenset({"read", "mapfile", "readarray", "printf", "unset", "getopts", "let", "wait", "coproc"})


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


_WORDS = frozenset(
    {
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "concatenation",
        "simple_expansion",
        "expansion",
    }
    | {"command_substitution", "process_substitution", "extglob_pattern", "brace_expression"}
)
_BOUNDS = frozenset({"program", "subshell", "command_substitution", "process_substitution"})
_PLAIN_FRAMES = frozenset(
    {"variable_assignments", "declaration_command", "redirected_statement", "compound_statement"}
)
# Leaves that the shell does not read again: quoted text, comments.
NO_SHELL = frozenset(
    {"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "command_substitution"}
)


def quoted_body(node: Node) -> bool:
    """Whether it is text of a here-document with a quoted delimiter."""
    if node.type not in ("heredoc_body", "heredoc_content"):
        return False
    while node.parent is not None and node.type != "heredoc_redirect":
        node = node.parent
    start = next((text_of(c) for c in node.children if c.type == "heredoc_start"), "'")
    return bool(re.search(r"""['"\\]""", start))


def left_as_text(body: Node) -> str:
    """What of an unquoted here-document is not taken apart by the grammar, substitutions that are left out."""
    raw, gone = (
        body.text or b"",
        [(c.start_byte, c.end_byte) for c in body.named_children if c.type == "command_substitution"],
    )
    for start, end in gone:
        raw = raw[: start - body.start_byte] + b" " * (end - start) + raw[end - body.start_byte :]
    return raw.decode("utf-8", "replace")


def open_variables(root: Node) -> dict[str, str | None]:
    """The variables of which the value depends on the way that is taken: set twice, read, counted with."""
    seen: dict[str, set[str]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.named_children)
        for name, value in _set_by(node):
            seen.setdefault(name, set()).add(value)
    opened = (
        set(seen)
        if "IFS" in seen
        else {name for name, values in seen.items() if len(values) > 1 or "?" in values}
    )
    return dict.fromkeys(opened)


def _set_by(node: Node) -> Iterator[tuple[str, str]]:
    """What a node sets, and to which text; ``?`` when that is not in the line."""
    kind = node.type
    if kind == "variable_assignment":
        if node.parent is None or node.parent.type != "command":  # else only for that command
            name, _, value = text_of(node).partition("=")
            certain = not name.endswith("+") and _always_runs(node)
            yield name.rstrip("+"), value if certain else "?"
    elif kind == "for_statement":
        name_node = node.child_by_field_name("variable")
        yield text_of(name_node) if name_node is not None else "", str(node.start_byte)
    elif kind in COMMANDS:
        words = text_of(node).split(None, 1)
        if kind == "declaration_command" and re.search(r"\s-\w*n", text_of(node)):
            yield "IFS", "?"  # a reference to another variable: nothing is known any more
        if words and (words[0].strip("\\\"'") in _SETTERS or kind == "unset_command"):
            yield from ((name, "?") for name in re.findall(r"[A-Za-z_]\w*", words[-1]))
    elif kind in ("arithmetic_expansion", "c_style_for_statement") or (
        kind in ("compound_statement", "test_command") and (node.text or b"").startswith((b"((", b"[["))
    ):
        yield from ((name, "?") for name in re.findall(r"[A-Za-z_]\w*", text_of(node)))


def _always_runs(node: Node) -> bool:
    """Whether it runs whatever happens, in the shell that reads the variable: `false && c=ls; $c` does not."""
    while (outer := node.parent) is not None and outer.type not in _BOUNDS:
        first = outer.type == "list" and outer.start_byte == node.start_byte
        if not first and outer.type not in _PLAIN_FRAMES:
            return False
        node = outer
    return True


def plain_words(node: Node, env: dict[str, str | None]) -> list[Word]:
    """The words of an argument; of ``[[ … ]]`` and the like, every word inside."""
    if node.type in (
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "negated_expression",
    ):
        return [word for leaf in _leaves(node) for word in words_of(leaf, env)]
    return words_of(node, env)


def declared(node: Node, env: dict[str, str | None]) -> Word:
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


def words_behind(node: Node, env: dict[str, str | None]) -> list[Word]:
    """The command's words that the grammar takes for parts of its redirections: ``rm -rf > out /``."""
    found: list[Word] = []
    for child in node.children:
        if child.type == "file_redirect":
            extra = child.children_by_field_name("destination")[1:]
        elif child.type == "heredoc_redirect":
            found += words_behind(child, env)
            extra = [item for item in child.named_children if item.type in _WORDS]
        else:
            continue
        found += [word for item in extra for word in words_of(item, env)]
    return found


def redirects_of(node: Node, env: dict[str, str | None]) -> tuple[Redirect, ...]:
    """The redirections that stand directly below a node, here-documents and here-strings too."""
    found: list[Redirect] = []
    for child in node.children:
        if child.type == "file_redirect":
            operator = next((c.type for c in child.children if not c.is_named), ">")
            targets = [w for c in child.children_by_field_name("destination")[:1] for w in words_of(c, env)]
            found.extend(Redirect(operator, target) for target in targets or [Word("", static=False)])
        elif child.type == "heredoc_redirect":
            found.append(Redirect("<<", None, heredoc_text(child)))
            found.extend(redirects_of(child, env))
        elif child.type == "herestring_redirect":
            words = [w for c in child.named_children for w in words_of(c, env)]
            found.append(Redirect("<<<", None, " ".join(w.text for w in words)))
    return tuple(found)
