"""The in-process runtime: an actor is an object, a call is a task; deaths can be staged, so every flow runs without Ray."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal

from ..core.errors import ErrorKind, OpenDevError
from ..core.mail import Down
from .runtime import Actor, Reply, dead, value_of

OnDown = Callable[[Down], Awaitable[None]]


class LocalRef:
    """A handle of an actor in this process."""

    def __init__(self, name: str, actor: Actor) -> None:
        self._name = name
        self._actor = actor
        self._death = ""
        self._calls: set[asyncio.Task[Any]] = set()

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._name

    async def ask(self, method: str, *args: Any) -> Any:
        """Call and wait; cancelling the await cancels the call. Raises ``OpenDevError``."""
        return value_of(await self._run(self._actor.call(method, *args)))

    async def stream(self, method: str, *args: Any) -> AsyncIterator[Any]:
        """Iterate an async-generator method; leaving the loop closes it."""
        items = self._actor.stream(method, *args)
        try:
            while (reply := await self._run(anext(items, None))) is not None:
                yield value_of(reply)
        finally:
            await items.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a generator

    async def _run(self, call: Awaitable[Reply | None]) -> Any:
        if self._death:
            if asyncio.iscoroutine(call):
                call.close()
            raise dead(self._name, self._death)
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._death and not (current and current.cancelling()):
                raise dead(self._name, self._death) from None
            raise
        finally:
            self._calls.discard(task)

    async def end(self, why: str) -> None:
        """Cancel what runs and refuse what comes."""
        self._death = self._death or why
        calls = [c for c in self._calls if c is not asyncio.current_task()]
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=5.0)


class DirectRef(LocalRef):
    """A handle of an object that exists already (the hub's own rooms)."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, Actor.around(target))


class LocalRuntime:
    """Actors as objects of this process. ``crash`` stages the death of one (tests of the Down flow)."""

    def __init__(self) -> None:
        self._refs: dict[str, LocalRef] = {}
        self._watchers: dict[str, list[OnDown]] = {}

    @property
    def actors(self) -> tuple[str, ...]:
        """Names of the living actors."""
        return tuple(self._refs)

    @property
    def kind(self) -> Literal["local", "ray"]:
        """Which runtime this is."""
        return "local"

    async def start(self) -> None:
        """Nothing to do."""

    async def spawn(self, cls: str, *args: Any, name: str) -> LocalRef:
        """Build the object. Raises ``OpenDevError`` when its constructor fails or the name is taken."""
        if name in self._refs:
            raise OpenDevError(ErrorKind.INTERNAL, f"An actor named {name} runs already.")
        actor = Actor(cls, *args)
        value_of(await actor.alive())
        ref = self._refs[name] = LocalRef(name, actor)
        return ref

    def watch(self, ref: Any, on_down: OnDown) -> None:
        """Call ``on_down`` once, when ``crash`` ends the actor."""
        self._watchers.setdefault(ref.name, []).append(on_down)

    async def kill(self, ref: Any) -> None:
        """Cancel the actor's calls and forget it."""
        self._watchers.pop(ref.name, None)
        if (own := self._refs.pop(ref.name, None)) is not None:
            await own.end("it was ended")

    async def crash(self, ref: Any) -> None:
        """End the actor as a SIGKILL would: pending calls fail, watchers hear of it."""
        watchers = self._watchers.pop(ref.name, [])
        if (own := self._refs.pop(ref.name, None)) is None:
            return
        await own.end("it crashed")
        for on_down in watchers:
            await on_down(Down(name=ref.name, reason="it crashed"))

    async def stop(self) -> None:
        """End every actor."""
        for ref in tuple(self._refs.values()):
            await self.kill(ref)
