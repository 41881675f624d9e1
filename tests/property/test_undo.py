"""Any sequence of tool writes, commands, edits of the user, undos and redos: the user's edits stay and the step is reversed, or a
refusal names the files and nothing is changed."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opendev.core.errors import ErrorKind, OpenDevError
from support.undoing import Undoing, Writes

NAMES = ("a", "b", "d/c", "d/e")
START = "".join(f"line {number}\n" for number in range(9))

Edit = tuple[str, str, int]  # what, which file, which line
EDIT = st.tuples(
    st.sampled_from(["line", "line", "line", "delete", "create"]), st.sampled_from(NAMES), st.integers(0, 8)
)
AGENT = st.tuples(
    st.just("agent"), st.lists(st.tuples(st.sampled_from(["tool", "command"]), EDIT), min_size=1, max_size=3)
)
USER = st.tuples(st.just("user"), EDIT)
BACK = st.sampled_from([("undo", None), ("undo", None), ("redo", None)])
SCRIPT = st.lists(st.one_of(AGENT, USER, BACK), min_size=2, max_size=7)


class World:
    """A project in which every line that somebody writes is theirs by its name."""

    def __init__(self, folder: Path) -> None:
        self.bench = Undoing(folder)
        self.count = 0
        self.brought_back: set[str] = set()
        for name in NAMES[:3]:
            self._write(name, START)

    def files(self) -> dict[str, str]:
        root = self.bench.root
        return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}

    def after(self, edit: Edit, who: str) -> tuple[str, str | None]:
        """The file and its content after an edit, None = gone."""
        what, name, line = edit
        self.count += 1
        mark = f"{who}{self.count}\n"
        now = self.files().get(name)
        if what == "delete":
            return name, None
        if what == "create" or now is None:
            return name, now if now is not None else mark
        lines = now.splitlines(keepends=True)
        lines[line % max(1, len(lines)) : line % max(1, len(lines)) + 1] = [mark]
        return name, "".join(lines)

    def put(self, edit: Edit, who: str) -> None:
        name, content = self.after(edit, who)
        if content is None:
            (self.bench.root / name).unlink(missing_ok=True)
        else:
            self._write(name, content)

    async def agent(self, acts: list[tuple[str, Edit]]) -> None:
        cover = self.bench.cover()
        who = f"agent{self.count}-"
        for how, edit in acts:
            name, content = self.after(edit, who)
            if how == "tool" and content is not None:
                await self.bench.answer(cover, Writes({name: content}))
            else:
                await self.bench.answer(cover, lambda edit=edit: self.put(edit, who))
        await cover.close()

    def back(self, kind: str) -> None:
        before = self.files()
        undo, prepared = self.bench.undo(), None
        try:
            prepared = undo.prepare(kind)  # type: ignore[arg-type]
            undo.carry_out(prepared)
        except OpenDevError as found:
            error = found.info
        else:
            error = None
        if error is not None:
            assert self.files() == before
            named = any(f"{name}: " in error.message for name in NAMES)
            assert error.kind is ErrorKind.USAGE or (error.kind is ErrorKind.CONFLICT and named), error
            return
        assert prepared is not None
        now = self.files()
        mine = lines_of(before)
        if kind == "redo":  # a line that the step itself replaced, and its undo brought back, goes again
            mine -= self.brought_back
        assert mine <= lines_of(now)
        self.brought_back |= lines_of(now) if kind == "undo" else set()
        changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
        assert changed <= set(prepared.files)

    def _write(self, name: str, content: str) -> None:
        path = self.bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def lines_of(files: dict[str, str]) -> set[str]:
    """The user's lines."""
    return {line for text in files.values() for line in text.splitlines() if line.startswith("user")}


async def play(script: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        history = [world.files()]  # as each standing step found it
        touched = False
        for what, detail in script:
            if what == "agent":
                found, steps = world.files(), len(world.bench.undo().steps())
                await world.agent(detail)  # type: ignore[arg-type]
                if len(world.bench.undo().steps()) > steps:
                    history.append(found)
                    touched = False
            elif what == "user":
                world.put(detail, "user")  # type: ignore[arg-type]
                touched = True
            else:
                standing = [step for step in world.bench.undo().steps() if not step.undone]
                world.back(what)
                if what == "undo" and not touched and standing and len(history) > standing[-1].number:
                    assert world.files() == history[standing[-1].number]
                touched = True


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(SCRIPT)
def test_the_users_edits_stay_and_steps_are_reversed_or_refused(script: list[tuple[str, object]]) -> None:
    asyncio.run(play(script))


@pytest.mark.soak
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCRIPT)
def test_the_same_for_many_sequences(script: list[tuple[str, object]]) -> None:
    asyncio.run(play(script))
