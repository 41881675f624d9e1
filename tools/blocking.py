"""Runs the blocking part of a tool in a thread; what it refuses becomes a readable result."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.tool import ToolContext, ToolResult

A = TypeVar("A", bound=Frozen)


async def run_blocking(work: Callable[[A, ToolContext], ToolResult], args: A, ctx: ToolContext) -> ToolResult:
    """``work(args, ctx)``, off the event loop; an ``OpenDevError`` is a failed result of its kind."""
    try:
        return await asyncio.to_thread(work, args, ctx)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
