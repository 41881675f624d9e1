"""A project with an agent's session around it, whose answers are played by the test: undo as the user sees it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opendev.agents.cover import Cover
from opendev.agents.settings import AgentPorts, UndoSettings
from opendev.agents.specs import builtin_specs
from opendev.agents.undo import Undo
from opendev.core.agent import AgentTask
from opendev.core.chat import ToolCall
from opendev.core.clock import SystemClock
from opendev.core.events import Event
from opendev.store.layout import Layout
from opendev.store.sessions import SessionStore
from opendev.tools.catalog import BUILTIN
from opendev.tools.files import Write, write_all
from opendev.tools.registry import ToolRegistry

from .agents import NoCompactor, People, ScriptedShell
from .repos import ENV
from .tool_context import EventLog, FakeSpawner, FakeSymbols

Act = Callable[[], Any]


@dataclass(frozen=True)
class Writes:
    """What file tools write: content by path."""

    files: Mapping[str, str | bytes]


class Undoing:
    """``step`` plays one turn of the agent; each ``Act`` is a command, each ``Writes`` what file tools do."""

    def __init__(self, tmp_path: Path, session: str = "sess0001", **settings: Any) -> None:
        self.root = tmp_path / "project"
        self.root.mkdir(exist_ok=True, parents=True)
        self.home = tmp_path / "home"
        self.session = session
        self.settings = UndoSettings.model_validate({"enabled": True, "wait_s": 60.0, **settings})
        self.log = EventLog()
        self.files = SessionStore(Layout(self.home), self.root).files(session)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.log.events if event.kind == "notice"]

    def _emit(self, event: Event) -> None:
        asyncio.get_running_loop()  # mail is only sent from there
        self.log(event)

    def cover(self, prompt: str = "do it") -> Cover:
        task = AgentTask(
            id=f"main-{self.session}",
            run_id=self.session,
            session=self.session,
            spec=builtin_specs()["Main"],
            prompt=prompt,
            root=str(self.root),
        )
        ports = AgentPorts(
            model=None,  # type: ignore[arg-type]
            shell=ScriptedShell(),
            ask=People(),
            spawner=FakeSpawner(),
            symbols=FakeSymbols(),
            emit=self._emit,
            clock=SystemClock(),
            child_env=ENV,
            home=self.home,
            compact=NoCompactor(),
        )
        cover = Cover(task, ports, self.settings, self.files, ToolRegistry(BUILTIN))
        cover.begin()
        return cover

    async def step(self, *acts: Act | Writes, prompt: str = "do it") -> None:
        cover = self.cover(prompt)
        for act in acts:
            await self.answer(cover, act)
        await cover.close()

    async def answer(self, cover: Cover, act: Act | Writes) -> None:
        """The calls of one answer."""
        tool = "edit_file" if isinstance(act, Writes) else "run_command"
        async with cover.around([ToolCall(id="1", name=tool, arguments={})]):
            if not isinstance(act, Writes):
                act()
                return
            for name, content in act.files.items():
                self.write(cover, name, content)

    def write(self, cover: Cover, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        write_all([Write(path, name, path.read_bytes() if path.exists() else None, data)], cover.log)

    def undo(self) -> Undo:
        return Undo(self.root, Layout(self.home), self.session, ENV, self.settings, SystemClock())

    def back(self, kind: Literal["undo", "redo"] = "undo", to: str = "") -> str:
        undo = self.undo()
        return undo.carry_out(undo.prepare(kind, to))

    def text(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None
