"""Stage 2: a separate thinking call without tools, when a thinking level is set (LOOP-05..07)."""

from ..iteration import IterationContext


async def thinking(_ctx: IterationContext) -> None:
    """No agent has a thinking level, so there is no call to make; the stage holds its place in the order of six."""
