"""The one ledger of tokens and dollars (MOD-07, ACT-14): reserve before a call, settle after it, journal both, hold every cap."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from ..core.chat import Usage
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.model import Frozen, JsonObject
from .cost import Price

_LEAST_OUTPUT = 256  # a cap that leaves room for less than this many output tokens is spent


_KEPT_ROWS = 1000  # that could not be written


class Journal(Protocol):
    """An append-only file of lines, durable when ``append`` returns (``store.atomic.JsonlLog``)."""

    def append(self, line: str) -> None: ...

    def read(self) -> Iterable[str]: ...


class Estimate(Frozen):
    """What a call may use: prompt tokens, output tokens at most, and their price."""

    prompt: int
    output: int
    price: Price

    @property
    def tokens(self) -> int:
        """Prompt and output."""
        return self.prompt + self.output

    @property
    def cost_usd(self) -> float:
        """US dollars at most, without any cache."""
        dearest = max(self.price.input, self.price.written or 0.0)
        return (self.prompt * dearest + self.output * self.price.output) / 1_000_000


class Reservation(Frozen):
    """Room set aside for one call. ``estimate.output`` is what the call may write at most."""

    id: str
    scopes: tuple[str, ...]
    estimate: Estimate


@dataclass
class _Account:
    """One scope: its caps, what was spent, what open calls may still take, and calls lost in a crash."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    lost: Usage = field(default_factory=Usage)
    lost_calls: int = 0
    open: dict[str, Estimate] = field(default_factory=dict[str, Estimate])

    @property
    def known(self) -> bool:
        """Whether it has a cap or a call; a scope that was only refused is none."""
        return (
            self.max_cost_usd is not None or self.max_tokens is not None or self.calls + self.lost_calls > 0
        )

    def room(self, *, committed: bool) -> tuple[float, float]:
        """Tokens and dollars left (infinite without a cap); ``committed`` also takes off what open calls hold."""
        held = self.open.values() if committed else ()
        spent = self.usage.input + self.usage.output + self.lost.input + self.lost.output
        tokens = float("inf") if self.max_tokens is None else self.max_tokens - spent
        cost = float("inf") if self.max_cost_usd is None else self.max_cost_usd
        cost -= self.usage.cost_usd + self.lost.cost_usd
        return tokens - sum(e.tokens for e in held), cost - sum(e.cost_usd for e in held)

    def fits(self, estimate: Estimate, *, committed: bool) -> bool:
        tokens, cost = self.room(committed=committed)
        # A free call still needs a budget that is not yet overdrawn.
        return estimate.tokens <= tokens and estimate.cost_usd <= cost

    def shrink(self, estimate: Estimate) -> Estimate:
        """The estimate with its output cut to what is left."""
        tokens, cost = self.room(committed=True)
        output = min(float(estimate.output), tokens - estimate.prompt)
        if estimate.price.output > 0:
            left = cost - estimate.model_copy(update={"output": 0}).cost_usd
            output = min(output, left / estimate.price.output * 1_000_000)
        return estimate.model_copy(update={"output": max(0, int(output))})


class Ledger:
    """Totals and caps by scope. ``all`` is the scope that every call is charged to; other scopes are ``run:<id>``, ``task:<id>``.

    A call that does not fit while others hold room waits for them; alone, its output is cut to what is left; below a useful
    rest it is refused. So a cap is overshot by less than the error of one call's prompt estimate.
    """

    ALL = "all"

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self._accounts: dict[str, _Account] = {self.ALL: _Account()}
        self._freed = asyncio.Event()
        self._unwritten: list[str] = []
        self._writing = asyncio.Lock()
        if journal is not None:
            self._restore(journal.read())

    async def open_scope(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None:
        """Set the caps of a scope; what it has spent stays."""
        self._cap(scope, max_cost_usd, max_tokens)
        self._wake()
        await self._note(
            {"op": "open", "scope": scope, "max_cost_usd": max_cost_usd, "max_tokens": max_tokens}
        )

    async def reserve(self, scopes: tuple[str, ...], estimate: Estimate) -> Reservation:
        """Set room aside in every scope. Raises ``OpenDevError`` (budget) when a cap is spent."""
        names = (self.ALL, *dict.fromkeys(s for s in scopes if s != self.ALL))
        accounts = {name: self._accounts.setdefault(name, _Account()) for name in names}
        while not all(account.fits(estimate, committed=True) for account in accounts.values()):
            if any(a.open and not a.fits(estimate, committed=True) for a in accounts.values()):
                self._refuse_if_spent(accounts, estimate, committed=False)
                await self._freed.wait()
                continue
            estimate = self._shrunk(accounts, estimate)
            break
        # No await between the check and this: the loop's single thread makes both one step.
        reservation = Reservation(id=new_id(), scopes=names, estimate=estimate)
        for account in accounts.values():
            account.open[reservation.id] = estimate
        held = {"prompt": estimate.prompt, "output": estimate.output, "cost_usd": estimate.cost_usd}
        try:
            await self._note({"op": "reserve", "id": reservation.id, "scopes": names, **held})
        except BaseException:
            self._close(reservation)
            if self._journal is not None:  # the row may be on disk already: take it back with the next flush
                self._unwritten.append(json.dumps({"op": "drop", "id": reservation.id}))
            raise
        return reservation

    async def settle(self, reservation: Reservation, usage: Usage, calls: int) -> None:
        """Charge what the call really used, over ``calls`` requests, and give the rest back."""
        self._close(reservation)
        for scope in reservation.scopes:
            account = self._accounts[scope]
            account.usage += usage
            account.calls += calls
        row = {"op": "settle", "id": reservation.id, "scopes": reservation.scopes, "calls": calls}
        await self._note({**row, "usage": usage.model_dump()})

    def totals(self) -> dict[str, Any]:
        """Usage and calls in all and by scope; ``lost`` are calls cut off by a crash (they count against caps as estimated)."""
        whole = self._accounts[self.ALL]
        return {
            "usage": whole.usage.model_dump(),
            "calls": whole.calls,
            "lost": {"calls": whole.lost_calls, "usage": whole.lost.model_dump()},
            "scopes": {
                name: {"usage": account.usage.model_dump(), "calls": account.calls}
                for name, account in self._accounts.items()
                if name != self.ALL and account.known
            },
        }

    def _cap(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None:
        account = self._accounts.setdefault(scope, _Account())
        account.max_cost_usd, account.max_tokens = max_cost_usd, max_tokens

    def _close(self, reservation: Reservation) -> None:
        for scope in reservation.scopes:
            self._accounts[scope].open.pop(reservation.id, None)
        self._wake()

    def _wake(self) -> None:
        """Let the calls that wait for room look again."""
        self._freed.set()
        self._freed = asyncio.Event()

    def _shrunk(self, accounts: dict[str, _Account], estimate: Estimate) -> Estimate:
        self._refuse_if_spent(accounts, estimate, committed=True)
        for account in accounts.values():
            estimate = account.shrink(estimate)
        return estimate

    def _refuse_if_spent(self, accounts: dict[str, _Account], estimate: Estimate, *, committed: bool) -> None:
        """Refuse when not even a short answer fits."""
        least = estimate.model_copy(update={"output": min(estimate.output, _LEAST_OUTPUT)})
        for name, account in accounts.items():
            if not account.fits(least, committed=committed):
                raise OpenDevError(
                    ErrorKind.BUDGET,
                    _spent_sentence(name, account, least),
                    "Raise the budget or split the task.",
                )

    async def flush(self) -> None:
        """Write every row that waits; rows of one moment share a flush. Raises ``OpenDevError`` (infra) and keeps the rows."""
        async with self._writing:
            rows, self._unwritten = self._unwritten, []
            if not rows or self._journal is None:
                return
            writing = asyncio.create_task(asyncio.to_thread(self._journal.append, "\n".join(rows)))
            cancelled = False
            while (
                not writing.done()
            ):  # a write that was begun is ended under the lock, whoever goes away meanwhile
                try:
                    await asyncio.wait({writing})
                except asyncio.CancelledError:
                    cancelled = True
            if isinstance(writing.exception(), OpenDevError):
                self._unwritten = [*rows, *self._unwritten][-_KEPT_ROWS:]
            if cancelled:
                raise asyncio.CancelledError
            writing.result()

    async def _note(self, row: JsonObject) -> None:
        """Write a row durably. A caller that is cancelled here leaves its row to the next flush."""
        if self._journal is not None:
            self._unwritten.append(json.dumps(row))
            await self.flush()

    def _restore(self, lines: Iterable[str]) -> None:
        """Rebuild the totals; a line that cannot be read is passed over, a reservation without an end counts as lost."""
        unsettled: dict[str, JsonObject] = {}
        for line in lines:
            try:
                row = cast("JsonObject", json.loads(line))
                self._replay(row, unsettled)
            except (ValueError, KeyError, TypeError):
                continue
        for row in unsettled.values():
            lost = Usage(input=row["prompt"], output=row["output"], cost_usd=row["cost_usd"], estimated=True)
            for scope in row["scopes"]:
                account = self._accounts.setdefault(scope, _Account())
                account.lost += lost
                account.lost_calls += 1

    def _replay(self, row: JsonObject, unsettled: dict[str, JsonObject]) -> None:
        if row["op"] == "open":
            self._cap(row["scope"], row["max_cost_usd"], row["max_tokens"])
        elif row["op"] == "reserve":
            unsettled[row["id"]] = row
        elif row["op"] == "drop":
            unsettled.pop(row["id"], None)
        elif row["op"] == "settle":
            unsettled.pop(row["id"], None)
            usage, calls = Usage.model_validate(row["usage"]), int(row["calls"])
            for scope in cast("list[str]", row["scopes"]):
                account = self._accounts.setdefault(scope, _Account())
                account.usage += usage
                account.calls += calls


def _spent_sentence(scope: str, account: _Account, least: Estimate) -> str:
    spent = account.usage + account.lost
    if account.max_tokens is not None and spent.input + spent.output + least.tokens > account.max_tokens:
        used = f"{spent.input + spent.output} of {account.max_tokens} tokens are used"
        return f"The token budget of {scope} is spent: {used}, and the next call needs about {least.tokens}."
    cap = account.max_cost_usd or 0.0
    used = f"${spent.cost_usd:.4f} of ${cap:.4f} are used"
    return f"The budget of {scope} is spent: {used}, and the next call may cost ${least.cost_usd:.4f}."
