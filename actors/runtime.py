"""What both runtimes share: the shell around a plain actor object that turns every exception into data, and loading by path."""

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator
from typing import Any

from ..core.errors import ErrorInfo, ErrorKind, OpenDevError

Reply = tuple[Any, ErrorInfo | None]  # a value, or why there is none

_log = logging.getLogger(__name__)


def load(path: str) -> type[Any]:
    """The class named ``package.module:Class``. Raises ``OpenDevError`` (internal) when there is none."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OpenDevError(
            ErrorKind.INTERNAL, f"The actor class {path} cannot be loaded: {error}.", "Install OpenDev again."
        ) from error


class Actor:
    """Holds one plain async object. Its methods never raise: a reply is a value or an ``ErrorInfo`` (errors are data).

    A failing constructor is told at the first call, so that its cause crosses the process too.
    """

    def __init__(self, path: str, *args: Any) -> None:
        self._path = path
        self._broken: ErrorInfo | None = None
        self._object: Any = None
        try:
            self._object = load(path)(*args)
        except Exception as error:  # noqa: BLE001 - the border of an actor
            self._broken = self._told("__init__", error)

    @classmethod
    def around(cls, target: object) -> "Actor":
        """An actor shell around an object that exists already."""
        actor = cls("builtins:object")
        actor._path, actor._object = type(target).__name__, target
        return actor

    async def alive(self) -> Reply:
        """The process id, once the object stands."""
        return os.getpid(), self._broken

    async def call(self, method: str, *args: Any) -> Reply:
        """Run one method to its end."""
        if self._broken is not None:
            return None, self._broken
        try:
            return await getattr(self._object, method)(*args), None
        except Exception as error:  # noqa: BLE001 - the border of an actor
            return None, self._told(method, error)

    async def stream(self, method: str, *args: Any) -> AsyncIterator[Reply]:
        """Run an async-generator method; an error is the last item."""
        if self._broken is not None:
            yield None, self._broken
            return
        try:
            async for item in getattr(self._object, method)(*args):
                yield item, None
        except Exception as error:  # noqa: BLE001 - the border of an actor
            yield None, self._told(method, error)

    async def wait_closed(self) -> None:
        """Never returns: its failure tells that the process died."""
        await asyncio.Event().wait()

    def _told(self, method: str, error: Exception) -> ErrorInfo:
        if isinstance(error, OpenDevError):
            return error.info
        _log.error("%s.%s failed", self._path, method, exc_info=error)
        return ErrorInfo(
            kind=ErrorKind.INTERNAL,
            message=f"{self._path}.{method} failed with {type(error).__name__}: {error}.",
            hint="This is a defect of OpenDev; the log holds the trace.",
        )


def value_of(reply: Reply) -> Any:
    """The value of a reply. Raises ``OpenDevError`` with the kind that the actor reported."""
    value, error = reply
    if error is not None:
        raise OpenDevError(error.kind, error.message, error.hint)
    return value


def dead(name: str, detail: str = "") -> OpenDevError:
    """The error of a call to an actor that is no more."""
    told = f" ({detail})" if detail else ""
    return OpenDevError(
        ErrorKind.INFRA,
        f"The process of {name} died{told}.",
        "What it did in its own folder is kept; start the task again.",
    )
