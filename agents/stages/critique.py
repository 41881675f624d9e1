"""Stage 3: critique of the thinking trace at level HIGH (LOOP-06)."""

from ..iteration import IterationContext


async def critique(_ctx: IterationContext) -> None:
    """Without a trace there is nothing to criticise; the stage holds its place in the order of six."""
