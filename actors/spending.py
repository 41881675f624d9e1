"""What one run spends of a session's ledger: the cap counts from where the run begins, the totals span every run (SES-09, MOD-07)."""

from dataclasses import dataclass

from ..core.chat import Usage
from ..core.errors import OpenDevError
from ..core.model import JsonObject
from ..core.session import Spent
from .hub import Hub


@dataclass(slots=True)
class Spending:
    """The ledger's totals when the run began and as they were last asked for."""

    hub: Hub
    before: Spent
    total: Spent

    @classmethod
    async def begin(cls, hub: Hub, scope: str, max_cost_usd: float | None) -> "Spending":
        """Open the run's scope with ``max_cost_usd`` above what earlier runs of the session have spent of it."""
        totals = await hub.model.ask("totals")
        before = _spent(totals)
        cap = max_cost_usd
        if cap is not None:
            lost = Usage.model_validate(totals["lost"]["usage"])  # of a crash: it counts against caps
            cap += before.total_cost_usd + lost.cost_usd
        await hub.model.ask("open_scope", scope, cap, None)
        return cls(hub, before, before)

    async def refresh(self) -> None:
        """Ask for the totals; when the model service died they stay what its answers told."""
        try:
            self.total = _spent(await self.hub.model.ask("totals"))
        except OpenDevError:
            self.total = self.before + Spent.of(*self.hub.total)

    @property
    def run(self) -> tuple[Usage, int]:
        """Usage and calls of this run alone."""
        now, then = self.total, self.before
        usage = Usage(
            input=now.total_input_tokens - then.total_input_tokens,
            output=now.total_output_tokens - then.total_output_tokens,
            cached=now.total_cached_tokens - then.total_cached_tokens,
            cost_usd=now.total_cost_usd - then.total_cost_usd if then.api_call_count else now.total_cost_usd,
        )
        return usage, now.api_call_count - then.api_call_count


def _spent(totals: JsonObject) -> Spent:
    return Spent.of(Usage.model_validate(totals["usage"]), int(totals["calls"]))
