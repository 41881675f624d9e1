"""Ticket files: TOML, YAML, JSON or JSON lines into a validated plan; every problem names file, line and key (SWM-05)."""

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from ..core.agent import AgentSpec
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.ticket import STEPS, SwarmPlan, SwarmSettings, Ticket
from .locate import KeyPath, Locator, json_lines, node_lines, toml_lines, unique_pairs

MAX_BYTES = 4_000_000
MAX_TASKS = 2_000
SHOWN = 50
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of the command line that win over the file; None = not given."""

    base: str | None = None
    into: str | None = None
    concurrency: int | None = None
    model: str | None = None
    verify: str | None = None
    dirty: str | None = None
    max_cost_usd: float | None = None

    def given(self) -> JsonObject:
        """The options that were given, by field of ``[swarm]``."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a ticket file."""

    path: KeyPath
    text: str
    line: int = 0

    def key(self) -> str:
        """The key path as people write it: ``task[2].goal``."""
        shown = ""
        for part in self.path:
            shown += f"[{part}]" if isinstance(part, int) else (f".{part}" if shown else part)
        return shown


class _Source:
    """A parsed file: its raw value and where its keys stand."""

    def __init__(self, raw: JsonObject, locate: Locator) -> None:
        self.raw = raw
        self.locate = locate


class _Unreadable(Exception):
    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


def load_plan(
    path: Path, *, agents: Mapping[str, AgentSpec], overrides: Overrides | None = None
) -> SwarmPlan:
    """Read and validate a ticket file. Raises ``OpenDevError`` (usage, exit 2) listing *all* its problems at once."""
    chosen = overrides or Overrides()
    try:
        source = _read(path)
    except _Unreadable as error:
        raise OpenDevError(
            ErrorKind.USAGE, f"{path}:{error.line}: {error.text}", "Nothing was started."
        ) from error
    raw = dict(source.raw)
    problems = _top_level(raw)
    swarm = raw.get("swarm", {})
    settings = None
    if isinstance(swarm, dict):
        merged = {**cast("JsonObject", swarm), **chosen.given()}
        settings = _validate(SwarmSettings, merged, ("swarm",), problems)
    tickets = _tickets(raw.get("task", []), problems)
    problems += _cross_check(tickets, _declared(raw.get("task", [])), agents)
    if settings is not None:
        problems += _check_into(settings)
    if problems or settings is None:
        raise _report(path, source.locate, problems)
    return SwarmPlan(swarm=settings, task=tuple(ticket for _, ticket in tickets))


def missing_parts(plan: SwarmPlan) -> tuple[str, ...]:
    """A warning for each ticket that lacks scope, verification or completion state (SWM-05); a missing goal is an error."""
    warnings: list[str] = []
    for ticket in plan.task:
        parts = {"scope": ticket.scope, "verify": ticket.verify, "done": ticket.done}
        lacking = [name for name, value in parts.items() if not value]
        if lacking:
            warnings.append(f"Ticket {ticket.id} has no {' and no '.join(lacking)}.")
    return tuple(warnings)


def _read(path: Path) -> _Source:
    readers: dict[str, Callable[[str], _Source]] = {
        ".toml": _read_toml,
        ".yaml": _read_yaml,
        ".yml": _read_yaml,
        ".json": _read_json,
        ".jsonl": _read_jsonl,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise _Unreadable("A ticket file ends in .toml, .yaml, .yml, .json or .jsonl.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _Unreadable(f"The ticket file is larger than {MAX_BYTES // 1_000_000} MB.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unreadable("The ticket file is not UTF-8 text.") from error
    except OSError as error:
        raise _Unreadable(f"The ticket file cannot be read: {error.strerror or error}.") from error
    try:
        return reader(text)
    except RecursionError as error:
        raise _Unreadable("The ticket file is nested too deeply.") from error


def _mapping(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise _Unreadable("A ticket file is a table with the keys `swarm` and `task`.")
    return cast("JsonObject", value)


def _read_toml(text: str) -> _Source:
    try:
        return _Source(tomllib.loads(text), toml_lines(text))
    except tomllib.TOMLDecodeError as error:
        words = str(error)
        line = int(words.partition("at line ")[2].partition(",")[0] or 0) if "at line " in words else 0
        raise _Unreadable(f"This is not TOML: {words}.", line or len(text.splitlines())) from error


def _read_yaml(text: str) -> _Source:
    try:
        root = yaml.SafeLoader(text).get_single_node()
        _check_nodes(root)
        return _Source(_mapping(yaml.safe_load(text)), node_lines(root))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _Unreadable(f"This is not YAML: {error.problem}.", line) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _Unreadable(f"This is not YAML: {error}.") from error


def _check_nodes(root: yaml.Node | None) -> None:
    todo, met = [root], set[int]()
    while todo:
        node = todo.pop()
        if node is not None and id(node) in met:
            # An alias costs one line and may stand for a million: refused before anything is built.
            raise _Unreadable("YAML aliases are not accepted.", node.start_mark.line + 1)
        met.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo.extend(node.value)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if str(key.value) in seen:
                    raise _Unreadable(f"The key {key.value!r} is given twice.", key.start_mark.line + 1)
                seen.add(str(key.value))
                todo.append(value)


def _parse_json(text: str, first_line: int = 1) -> JsonObject:
    try:
        return _mapping(json.loads(text, object_pairs_hook=unique_pairs))
    except json.JSONDecodeError as error:
        raise _Unreadable(f"This is not JSON: {error.msg}.", first_line + error.lineno - 1) from error
    except _Unreadable as error:
        raise _Unreadable(error.text, first_line) from error


def _read_json(text: str) -> _Source:
    return _Source(_parse_json(text), json_lines(text))


def _read_jsonl(text: str) -> _Source:
    tasks: list[JsonObject] = []
    raw: JsonObject = {"task": tasks}
    lines: dict[KeyPath, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        value = _parse_json(line, number)
        if not tasks and "swarm" not in raw and set(value) == {"swarm"}:
            raw["swarm"] = value["swarm"]
            lines["swarm",] = number
        else:
            lines["task", len(tasks)] = number
            tasks.append(value)
    return _Source(raw, Locator(lines))


def _top_level(raw: JsonObject) -> list[Problem]:
    problems = [
        Problem((key,), "unknown key; a ticket file has `swarm` and `task`")
        for key in raw
        if key not in ("swarm", "task", "schema")
    ]
    if raw.get("schema", 1) != 1:
        problems.append(Problem(("schema",), "only schema 1 is known"))
    if not isinstance(raw.get("swarm", {}), dict):
        problems.append(Problem(("swarm",), "must be a table"))
    tasks = raw.get("task", [])
    if not isinstance(tasks, list):
        problems.append(Problem(("task",), "must be a list of tables (`[[task]]`)"))
    elif not tasks:
        problems.append(Problem(("task",), "there is no task"))
    elif len(cast("list[Any]", tasks)) > MAX_TASKS:
        problems.append(Problem(("task",), f"more than {MAX_TASKS} tasks; split the file"))
    return problems


def _validate(model: type[M], raw: JsonObject, at: KeyPath, problems: list[Problem]) -> M | None:
    try:
        return model.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        problems += [
            Problem((*at, *_own_part(item["loc"], raw)), _words(item["type"], item["msg"]))
            for item in error.errors()
        ]
        return None


def _own_part(loc: tuple[str | int, ...], raw: JsonObject) -> KeyPath:
    # A union adds its tags to the location; only what exists in the file may be named.
    return loc if len(loc) <= 1 or loc[0] in raw else loc[:1]


def _words(kind: str, text: str) -> str:
    known = {"extra_forbidden": "unknown key", "missing": "is required"}
    return known.get(kind, text.removeprefix("Value error, "))


def _tickets(raw: Any, problems: list[Problem]) -> list[tuple[int, Ticket]]:
    found: list[tuple[int, Ticket]] = []
    for index, item in enumerate(cast("list[Any]", raw) if isinstance(raw, list) else []):
        at: KeyPath = ("task", index)
        if not isinstance(item, dict):
            problems.append(Problem(at, "must be a table"))
            continue
        fields_ = dict(cast("JsonObject", item))
        if not _check_recipe(fields_.get("recipe", []), (*at, "recipe"), problems):
            fields_.pop("recipe")
        before = len(problems)
        ticket = _validate(Ticket, fields_, at, problems) or _salvage(fields_, at, problems[before:])
        if ticket is not None:
            found.append((index, ticket))
    return found


def _salvage(raw: JsonObject, at: KeyPath, problems: list[Problem]) -> Ticket | None:
    """What is right of a ticket with problems, so that its other fields are judged in the same go."""
    bad = {part for item in problems for part in item.path[len(at) : len(at) + 1]}
    sound = {name: value for name, value in raw.items() if name not in bad}
    return _validate(Ticket, {"id": f"no-valid-id-{at[-1]}", "goal": "none", **sound}, at, [])


def _check_recipe(raw: Any, at: KeyPath, problems: list[Problem]) -> bool:
    if not isinstance(raw, list):
        problems.append(Problem(at, "must be a list of steps"))
        return False
    before = len(problems)
    for number, step in enumerate(cast("list[Any]", raw)):
        here = (*at, number)
        entries = list(cast("JsonObject", step).items()) if isinstance(step, dict) else []
        if len(entries) != 1 or entries[0][0] not in STEPS:
            problems.append(Problem(here, f"a step has exactly one of the keys {', '.join(STEPS)}"))
            continue
        name, body = entries[0]
        if isinstance(body, dict):
            _validate(STEPS[name], cast("JsonObject", body), (*here, name), problems)
        else:
            problems.append(Problem((*here, name), "must be a table"))
    return len(problems) == before


def _declared(raw: Any) -> frozenset[str]:
    """Every id in the file, also of tickets with problems of their own."""
    items = cast("list[Any]", raw) if isinstance(raw, list) else []
    return frozenset(str(cast("JsonObject", item).get("id")) for item in items if isinstance(item, dict))


def _cross_check(
    tickets: list[tuple[int, Ticket]], declared: frozenset[str], agents: Mapping[str, AgentSpec]
) -> list[Problem]:
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for index, ticket in tickets:
        if ticket.id in first:
            problems.append(
                Problem(("task", index, "id"), f"`{ticket.id}` is the id of task[{first[ticket.id]}] as well")
            )
        first.setdefault(ticket.id, index)
    for index, ticket in tickets:
        at: KeyPath = ("task", index)
        problems += [
            Problem((*at, "depends_on"), f"there is no ticket `{parent}`")
            for parent in ticket.depends_on
            if parent not in declared
        ]
        problems += _check_agents(ticket, at, agents)
        problems += _check_globs(ticket, at)
    problems += [
        Problem(("task", first[ring[0]], "depends_on"), f"a cycle: {' -> '.join([*ring, ring[0]])}")
        for ring in cycles({ticket.id: ticket.depends_on for _, ticket in tickets})
    ]
    return problems


def _check_agents(ticket: Ticket, at: KeyPath, agents: Mapping[str, AgentSpec]) -> Iterable[Problem]:
    known = ", ".join(sorted(agents))
    spec = agents.get(ticket.agent)
    if spec is None:
        yield Problem((*at, "agent"), f"there is no agent `{ticket.agent}`; known are {known}")
    elif not spec.writes:
        yield Problem((*at, "agent"), f"the agent `{ticket.agent}` may not write, so it cannot do a ticket")
    for name in ticket.review:
        if name not in agents:
            yield Problem((*at, "review"), f"there is no agent `{name}`; known are {known}")


def _check_globs(ticket: Ticket, at: KeyPath) -> Iterable[Problem]:
    for key, patterns in (("scope", ticket.scope), ("avoid", ticket.avoid)):
        for pattern in patterns:
            if not pattern.strip() or ".." in pattern.split("/") or pattern.startswith(("/", "!", "~")):
                yield Problem((*at, key), f"`{pattern}` is not a pattern relative to the repository's root")


def _check_into(settings: SwarmSettings) -> list[Problem]:
    name = settings.into
    bad = not name or name.startswith(("-", "/", ".")) or name.endswith(("/", ".lock", "."))
    if bad or any(part in name for part in ("..", "//", "@{", "/.")) or set(name) & set(" ~^:?*[\\\x7f"):
        return [Problem(("swarm", "into"), f"`{name}` is not a branch name")]
    return []


def cycles(parents: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Every ticket that waits for itself, one ring per group, in file order; empty when there is an order."""
    left = {name: {p for p in wanted if p in parents} for name, wanted in parents.items()}
    while ready := [name for name, wanted in left.items() if not wanted & left.keys()]:
        for name in ready:
            del left[name]
    rings: list[list[str]] = []
    seen: set[str] = set()
    for start in left:
        walk: list[str] = []
        name = start
        while name not in seen and name not in walk:
            walk.append(name)
            name = next(parent for parent in parents[name] if parent in left)
        if name in walk:
            rings.append(walk[walk.index(name) :])
        seen.update(walk)
    return rings


def _report(path: Path, locate: Locator, problems: list[Problem]) -> OpenDevError:
    placed = sorted(
        (Problem(item.path, item.text, locate.line(item.path)) for item in problems),
        key=lambda item: item.line,
    )
    lines = [f"{path}:{item.line}: {item.key()}: {item.text}" for item in placed[:SHOWN]]
    if len(placed) > SHOWN:
        lines.append(f"... and {len(placed) - SHOWN} more")
    count = f"{len(placed)} problem{'s' if len(placed) != 1 else ''}"
    return OpenDevError(
        ErrorKind.USAGE, f"The ticket file has {count}:\n" + "\n".join(lines), "Nothing was started."
    )
