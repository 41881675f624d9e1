"""What a batch would do: waves, predicted overlaps, what waits for what, worst-case cost (SWM-16, `--dry-run`)."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from ..context.cautions import cautions
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Persisted
from ..core.scope import Scope
from ..core.ticket import Overlap, SwarmPlan, Ticket
from .globs import may_meet, shared_files
from .tickets import missing_parts

SHOWN_FILES = 20


class OverlapFound(Persisted):
    """Two tickets, neither after the other, whose scopes meet. ``files`` (at most 20) exist; none = only the patterns meet."""

    first: str
    second: str
    files: tuple[str, ...] = ()
    serial: bool


class PlanView(Persisted):
    """The plan as shown by ``--dry-run`` and used by the schedule."""

    base: str
    into: str
    concurrency: int
    waves: tuple[tuple[str, ...], ...]
    overlaps: tuple[OverlapFound, ...] = ()
    waits: dict[str, tuple[str, ...]] = {}  # by overlap: starts when those have ended, however they ended
    warnings: tuple[str, ...] = ()
    worst_case_usd: float | None = None  # None: nothing bounds it
    tickets: int


def make_plan(plan: SwarmPlan, *, base: str, files: Sequence[str]) -> PlanView:
    """The view of a plan on base commit ``base`` with its ``files``. Raises ``OpenDevError`` (usage) when overlap is refused."""
    order = topological(plan.task)
    overlaps = _overlaps(plan, order, files)
    if overlaps and plan.swarm.overlap is Overlap.REFUSE:
        pairs = ", ".join(f"{item.first} and {item.second}" for item in overlaps[:10])
        raise OpenDevError(
            ErrorKind.USAGE,
            f'The scopes of {pairs} overlap, and the ticket file says `overlap = "refuse"`.',
            "Narrow the scopes, order the tickets by `depends_on`, or choose another `overlap`.",
        )
    waits: dict[str, tuple[str, ...]] = {}
    for item in overlaps:
        if item.serial:
            waits[item.second] = (*waits.get(item.second, ()), item.first)
    return PlanView(
        base=base,
        into=plan.swarm.into,
        concurrency=plan.swarm.concurrency,
        waves=_waves(plan.task, order, waits),
        overlaps=overlaps,
        waits=waits,
        warnings=(*missing_parts(plan), *_cautions(plan)),
        worst_case_usd=worst_case(plan),
        tickets=len(plan.task),
    )


def _cautions(plan: SwarmPlan) -> tuple[str, ...]:
    """A warning for each goal that should not be worked on unseen (BLG-19); a recipe does exactly what it says."""
    return tuple(
        f"Ticket {ticket.id}: {why}."
        for ticket in plan.task
        if not ticket.recipe
        for why in cautions(ticket.goal)
    )


def topological(tickets: Sequence[Ticket]) -> tuple[str, ...]:
    """Ids so that parents come first, otherwise in file order. The plan holds no cycle (checked on loading)."""
    placed: dict[str, None] = {}
    left = list(tickets)
    while left:
        ready = next(ticket for ticket in left if all(parent in placed for parent in ticket.depends_on))
        placed[ready.id] = None
        left.remove(ready)
    return tuple(placed)


def worst_case(plan: SwarmPlan) -> float | None:
    """The most the batch can cost in US dollars by its declared caps; a recipe without reviewers costs nothing."""
    caps = [0.0 if ticket.recipe and not ticket.review else ticket.max_cost_usd for ticket in plan.task]
    if any(cap is None for cap in caps):
        return plan.swarm.max_cost_usd
    total = sum(cap for cap in caps if cap is not None)
    return total if plan.swarm.max_cost_usd is None else min(total, plan.swarm.max_cost_usd)


def _overlaps(plan: SwarmPlan, order: Sequence[str], files: Sequence[str]) -> tuple[OverlapFound, ...]:
    if plan.swarm.overlap is Overlap.PARALLEL and len(plan.task) > 200:
        return ()  # nothing would be done with them, and there are many pairs
    by_id = {ticket.id: ticket for ticket in plan.task}
    scopes = {ticket.id: Scope(may=ticket.scope, avoid=ticket.avoid) for ticket in plan.task}
    ancestors = _ancestors(order, {ticket.id: ticket.depends_on for ticket in plan.task})
    found: list[OverlapFound] = []
    for first, second in combinations(order, 2):
        if first in ancestors[second]:
            continue
        shared = shared_files(scopes[first], scopes[second], files)
        if shared or may_meet(scopes[first], scopes[second]):
            recipes = bool(by_id[first].recipe and by_id[second].recipe)
            serial = plan.swarm.overlap is Overlap.SERIAL or (
                plan.swarm.overlap is Overlap.AUTO and not recipes
            )
            found.append(OverlapFound(first=first, second=second, files=shared[:SHOWN_FILES], serial=serial))
    return tuple(found)


def _ancestors(order: Sequence[str], parents: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    above: dict[str, set[str]] = {}
    for name in order:
        above[name] = set(parents[name]).union(*(above[parent] for parent in parents[name]))
    return above


def _waves(
    tickets: Sequence[Ticket], order: Sequence[str], waits: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    parents = {ticket.id: ticket.depends_on for ticket in tickets}
    level: dict[str, int] = {}
    for name in order:
        before = (*parents[name], *waits.get(name, ()))
        level[name] = 1 + max((level[other] for other in before), default=-1)
    return tuple(
        tuple(name for name in order if level[name] == depth)
        for depth in range(max(level.values(), default=-1) + 1)
    )


def render_plan(view: PlanView) -> str:
    """The plan as text, for ``--dry-run``."""
    cost = (
        "unbounded (no cap is set)" if view.worst_case_usd is None else f"at most ${view.worst_case_usd:.2f}"
    )
    lines = [
        f"{view.tickets} tickets from {view.base[:12]} into {view.into}, {view.concurrency} at once, cost {cost}.",
        *(f"  wave {number}: {', '.join(wave)}" for number, wave in enumerate(view.waves, start=1)),
    ]
    for item in view.overlaps:
        where = ", ".join(item.files[:5]) or "files yet to come"
        how = f"{item.second} waits for {item.first}" if item.serial else "they run side by side"
        lines.append(f"  overlap: {item.first} and {item.second} in {where}: {how}")
    lines += [f"  warning: {warning}" for warning in view.warnings]
    return "\n".join([*lines, "  Nothing was run."])
