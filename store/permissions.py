"""permissions.json of the user and of a project: read, merged, and extended by an "always" (APR-05, APR-06)."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..core.clock import Clock, iso
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.permissions import MAX_RULES, Action, Permissions, Rule, RuleFile, by_priority
from .atomic import Lock, write_atomic
from .consent import agreed

NAME = "permissions.json"
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class LoadedRules:
    """The rules that hold in a project, and what a person should know of them."""

    permissions: Permissions
    notes: tuple[str, ...] = ()


def load_permissions(home: Path, project: Path) -> LoadedRules:
    """The user's rules for ``project`` and the project's own. Blocking.

    For the same pattern the project's rule wins once the user agreed to its file (its content stands in trust.json); before
    that its rules only refuse and ask. Raises ``OpenDevError`` (config) for a file that cannot be understood: a refusal that
    may stand in it must not be lost.
    """
    here = str(project.resolve())
    user = tuple(rule for rule in read_rules(home / NAME) if rule.project in ("", here))
    path = project.resolve() / ".opendev" / NAME
    data = _bytes(path)
    if data is None:
        return LoadedRules(Permissions(rules=by_priority(user)))
    own = tuple(rule for rule in parse_rules(data, path) if rule.project in ("", here))
    if agreed(home).get(str(path)) == hashlib.sha256(data).hexdigest():
        keys = {rule.key for rule in own}
        merged = (*own, *(rule for rule in user if rule.key not in keys))
        return LoadedRules(Permissions(rules=by_priority(merged)))
    narrowing = tuple(rule for rule in own if rule.action is not Action.APPROVE)
    left = sum(rule.enabled for rule in own) - sum(rule.enabled for rule in narrowing)
    note = (
        f"{path}: its rules that let calls pass ({left}) are not used: you have not agreed to this file. "
        f"Read it; to agree: opendev config trust .opendev/{NAME}."
    )
    return LoadedRules(
        Permissions(rules=by_priority(user), narrowing=by_priority(narrowing)), (note,) if left else ()
    )


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in the file; none when there is no file. Raises ``OpenDevError`` (config)."""
    data = _bytes(path)
    return () if data is None else parse_rules(data, path)


def add_rules(home: Path, rules: tuple[Rule, ...], clock: Clock) -> None:
    """Save what a person always allows in the user's file; a rule that stands there already is not doubled. Blocking.

    Raises ``OpenDevError``: config when the file cannot be understood or is full, infra when it cannot be written.
    """
    path = home / NAME
    with Lock(home / f"{NAME}.lock"):
        found = read_rules(path)
        known = {(rule.key, rule.project, rule.action) for rule in found if rule.enabled}
        now = iso(clock.now())
        new = tuple(
            rule.model_copy(update={"id": rule.id or new_id(8), "created_at": now, "modified_at": now})
            for rule in rules
            if (rule.key, rule.project, rule.action) not in known
        )
        if len(found) + len(new) > MAX_RULES:
            raise OpenDevError(
                ErrorKind.CONFIG,
                f"{path} holds {len(found):,} rules; {MAX_RULES:,} are the most.",
                "Delete some.",
            )
        if new:
            text = RuleFile(rules=(*found, *new)).model_dump_json(indent=2) + "\n"
            write_atomic(path, text.encode())


def parse_rules(data: bytes, path: Path) -> tuple[Rule, ...]:
    """The rules in a file's bytes. Raises ``OpenDevError`` (config) that names line, rule and field."""
    try:
        text = data.decode("utf-8-sig")
        value: Any = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _bad(path, error.lineno, f"not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise _bad(path, 1, str(error) or "nested too deeply") from error
    try:
        return RuleFile.model_validate(value).rules
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"]
        name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
        message = f"{f'`{name}`: ' if name else ''}{first['msg'].removeprefix('Value error, ')}"
        raise _bad(path, _line(text, where), message) from error


def _bytes(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"{path} cannot be read: {error.strerror or error}.",
            "Make it readable, or remove it.",
        ) from error
    if len(data) > MAX_BYTES:
        raise _bad(path, 1, f"it is larger than {MAX_BYTES:,} bytes")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice is an error: which of the two a reader saw would be a matter of luck."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the key `{next(n for n in names if names.count(n) > 1)}` stands twice in one object"
        )
    return found


def _line(text: str, where: tuple[int | str, ...]) -> int:
    """The line of a field, as far as it can be found: rule ``n`` begins at the n-th object inside of the list."""
    start = re.search(r'"rules"\s*:\s*\[', text)
    if start is None or len(where) < 2 or not isinstance(where[1], int):
        key = re.search(rf'"{re.escape(str(where[0]))}"\s*:', text) if where else None
        return text.count("\n", 0, key.start()) + 1 if key else 1
    at = start.end()
    decoder = json.JSONDecoder()
    for _ in range(where[1]):
        at = _skip(text, at)
        at = decoder.raw_decode(text, at)[1]
    at = _skip(text, at)
    end = decoder.raw_decode(text, at)[1]
    field = re.compile(rf'"{re.escape(str(where[2]))}"\s*:').search(text, at, end) if len(where) > 2 else None
    return text.count("\n", 0, field.start() if field else at) + 1


def _skip(text: str, at: int) -> int:
    found = cast("re.Match[str]", re.compile(r"[\s,]*").match(text, at))
    return found.end()


def _bad(path: Path, line: int, why: str) -> OpenDevError:
    return OpenDevError(
        ErrorKind.CONFIG,
        f"{path}, line {line}: {why}.",
        "Mend it there: no rule is used while one is unclear.",
    )
