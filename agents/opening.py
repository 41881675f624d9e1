"""What stands in front of a query: the files the user mentioned and the map of the repository (RET-03 source 3, RET-07, RET-08)."""

import asyncio
import contextlib
import sys
from pathlib import Path

from ..context.mentions import references
from ..context.repomap import BUILD_S, load, render
from ..core.chat import MessageClass, Role, UserMessage
from ..core.errors import OpenDevError
from ..core.events import Notice
from ..llm.roles import model_for
from ..tools.child import run_lines
from .iteration import IterationContext
from .references import Mentioned, read_mentions

_ROOM_CHARS = 60_000  # of all files mentioned, whatever the window
_MAP_NEEDS = frozenset({"read_file", "find_symbol"})  # of use only to an agent that can follow it
_MAP_TITLE = "Map of the repository"


async def attach_references(ctx: IterationContext) -> None:
    """Put the references into the conversation, and tell the user what could not be attached.

    Mentions are looked for only in what a person typed, so only in the foreground agent's prompt: a sub-agent's was
    written by a model. The map is the one of the last build; a new one is begun beside the foreground agent.
    """
    task = ctx.task
    if task.recipe:
        return
    blocks: list[tuple[str, str]] = []
    found = Mentioned()
    if text := await _map(ctx):
        blocks.append((_MAP_TITLE, text))
    if task.stream:
        room = min(_ROOM_CHARS, ctx.picker.opening_chars or _ROOM_CHARS)
        tools = ctx.dispatcher.make_context("references")
        found = await read_mentions(task.prompt, tools, ctx.dispatcher.gate, room, _blind(ctx))
        if _wants_map(ctx):
            ctx.map_build = asyncio.create_task(_build(ctx))
    for note in found.notes:
        ctx.emit(Notice(level="warning", text=note))
    ctx.mapped = bool(text)
    _say(ctx, [*blocks, *found.blocks], found)


async def attach_late_map(ctx: IterationContext) -> None:
    """Give the agent the map of its project when the first build is finished; later builds are for later runs."""
    if ctx.mapped or ctx.map_build is None or not ctx.map_build.done():
        return
    ctx.mapped = True
    if text := await _map(ctx):
        _say(ctx, [(_MAP_TITLE, text)], Mentioned())


async def stop_build(ctx: IterationContext) -> None:
    """End a build that still runs; what it parsed is kept."""
    if ctx.map_build is not None:
        ctx.map_build.cancel()
        await asyncio.wait({ctx.map_build})


def _wants_map(ctx: IterationContext) -> bool:
    return ctx.settings.repo_map_tokens > 0 and {*ctx.dispatcher.registry.names} >= _MAP_NEEDS


async def _map(ctx: IterationContext) -> str:
    if not _wants_map(ctx):
        return ""
    root, home = Path(ctx.task.root), ctx.ports.home
    found = await asyncio.to_thread(load, home, root)
    if found is None:
        return ""
    return await asyncio.to_thread(render, found, ctx.task.prompt, ctx.settings.repo_map_tokens, root)


async def _build(ctx: IterationContext) -> None:
    """A process of its own, so that parsing never slows the loop; its failure costs nothing but the map."""
    await asyncio.to_thread(ctx.ports.home.mkdir, parents=True, exist_ok=True, mode=0o700)
    module = f"{(__package__ or '').rsplit('.', 1)[0]}.context.repomap"
    with contextlib.suppress(OpenDevError):
        await run_lines(
            [sys.executable, "-P", "-m", module, ctx.task.root, str(ctx.ports.home)],
            cwd=ctx.ports.home,
            env={name: ctx.ports.child_env[name] for name in ("PATH", "LANG") if name in ctx.ports.child_env},
            on_line=lambda _line: True,
            timeout_s=2 * BUILD_S,
        )


def _blind(ctx: IterationContext) -> str:
    """Why the model is not shown a picture, and who can look at it instead; empty when it sees (MOD-02)."""
    if ctx.model in ctx.settings.seeing:
        return ""
    try:
        eyes = model_for(Role.VISION, ctx.models, lambda name: name in ctx.settings.seeing)
    except OpenDevError:
        eyes = ""
    if eyes and "analyze_image" in ctx.dispatcher.registry.names:
        return f"it is a picture, and {ctx.model} sees none. Ask {eyes} about it with the tool analyze_image."
    return f"it is a picture, and {ctx.model} sees none. Configure a model for the role vision."


def _say(ctx: IterationContext, blocks: list[tuple[str, str]], found: Mentioned) -> None:
    if text := references(blocks, found.notes):
        ctx.messages.add_user(UserMessage(content=text, images=found.images, msg_class=MessageClass.INTERNAL))
