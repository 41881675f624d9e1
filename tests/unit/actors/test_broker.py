"""The spawn broker on the local runtime: caps, rights, worktrees, tiers, resume (SUB-05, 09, 10, 18; ACT-07; W05, W07)."""

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from opendev.actors.hub import Hub
from opendev.actors.inbox import Inbox
from opendev.actors.local_runtime import LocalRuntime
from opendev.actors.sides import HubPorts, HubSettings
from opendev.core.agent import AgentReport, AgentSpec, AgentStatus
from opendev.core.chat import Role, SystemMessage, UserMessage
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import AgentFinished, LeaseEnded, LeaseGranted
from opendev.core.lease import Lease, Owner
from opendev.store.records import TranscriptLine
from support.runtimes import MAIN, SPECS, events_of, hub_on, script, task_of
from support.waiting import until

BASE = "0" * 40


@dataclass
class FakeDesk:
    """Hands out plain folders and remembers what happened to them."""

    home: Path
    log: list[str] = field(default_factory=list[str])
    broken: bool = False

    async def snapshot(self, folder: str = "") -> str:
        return BASE

    async def lease(
        self, *, write: bool, task: str, run_id: str, base: str = "", private: bool = False
    ) -> Lease:
        if self.broken:
            raise OpenDevError(ErrorKind.GIT, "The repository is locked.")
        path = self.home / task
        path.mkdir()
        (path / ".git").write_text(f"gitdir: /r/.git/worktrees/{task}\n")
        self.log.append(f"lease {'write' if write else 'private' if private else 'read'} {base}")
        return Lease(
            id=task,
            kind="write" if write else "read",
            repo="/r",
            path=str(path),
            base=BASE,
            branch=f"agent/{task}",
            owner=Owner(pid=1, started=1),
        )

    async def commit(self, lease: Lease, message: str) -> str:
        self.log.append(f"commit {message}")
        return "1" * 40 if await self.changed(lease) else lease.base

    async def changed(self, lease: Lease) -> tuple[str, ...]:
        return tuple(sorted(set(os.listdir(lease.path)) - {".git"}))  # noqa: PTH208 - a plain listing, in a test

    async def release(self, lease: Lease) -> str:
        self.log.append("release")
        return "removed"

    async def quarantine(self, lease: Lease, reason: str) -> str:
        self.log.append(f"quarantine {reason}")
        return f"refs/opendev/rescue/{lease.id}"


def wish(agent: str, *steps: list[Any], **more: Any) -> dict[str, Any]:
    return {"agent": agent, "prompt": script(*steps), **more}


@pytest.mark.req("ACT-07")
async def test_each_writer_has_its_own_folder_and_branch_and_readers_share_the_parents(
    tmp_path: Path,
) -> None:
    desk = FakeDesk(tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    write = ["shell", "pwd > here"]
    async with hub_on(LocalRuntime(), tmp_path, desk=desk) as hub:
        spawn = [
            "spawn",
            wish("Writer", write, ["say", "made it"]),
            wish("Writer", write),
            wish("Leaf", ["shell", "pwd"]),
        ]
        report = await hub.run_agent(task_of("r", root, spawn))
    first, second, reader = report.text.split("|")
    branches = {part.rpartition(":")[2] for part in (first, second)}
    assert len(branches) == 2
    assert all(b.startswith("agent/") for b in branches)
    assert reader == f"done:{root}:"
    found = await asyncio.to_thread(
        lambda: {str(p.parent): p.read_text().strip() for p in tmp_path.glob("*/here")}
    )
    assert len(found) == 2
    assert all(folder == inside for folder, inside in found.items())
    assert desk.log.count("release") == 2
    kinds = [e.kind for e in await events_of(hub) if isinstance(e, LeaseGranted | LeaseEnded)]
    assert sorted(kinds) == ["lease_ended"] * 2 + ["lease_granted"] * 2


async def test_a_writer_without_isolation_is_refused(tmp_path: Path) -> None:
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        report = await hub.run_agent(
            task_of("r", tmp_path, ["spawn", wish("Writer", ["shell", "touch bad"])])
        )
        assert "needs a folder of its own" in report.text
        assert hub.counts.spawned == 1
    async with hub_on(LocalRuntime(), tmp_path / "b", desk=FakeDesk(tmp_path, broken=True)) as hub:
        report = await hub.run_agent(
            task_of("r", tmp_path, ["spawn", wish("Writer", ["shell", "touch bad"])])
        )
        assert report.text.startswith("infra:")
    assert not (tmp_path / "bad").exists()


async def test_a_cancelled_writers_work_is_rescued(tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    async with hub_on(LocalRuntime(), tmp_path, desk=desk) as hub:
        main = task_of("r", tmp_path, ["spawn", wish("Writer", ["sleep", 60])])
        run = asyncio.create_task(hub.run_agent(main))
        await until(lambda: f"lease write {BASE}" in desk.log)
        await asyncio.sleep(0.1)
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
    assert any(line.startswith("quarantine") for line in desk.log)
    assert "release" not in desk.log


@pytest.mark.req("SUB-18")
async def test_rights_depth_and_unknown_types_are_refused_with_a_sentence(tmp_path: Path) -> None:
    grandchild = wish("Reader", ["spawn", wish("Reader", ["say", "too deep"])])
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        spawn = [
            "spawn",
            wish("Leaf", ["spawn", wish("Leaf", ["say", "no"])]),
            wish("Readr"),
            wish("Reader", ["spawn", grandchild]),
        ]
        report = await hub.run_agent(task_of("r", tmp_path, spawn))
    no_right, unknown, deep = report.text.split("|")
    assert "may not start sub-agents" in no_right
    assert "Reader" in unknown
    assert "2 deep" in deep
    assert "too deep" not in deep


@pytest.mark.req("SUB-05")
async def test_endless_spawning_stops_at_the_caps_and_nobody_is_left(tmp_path: Path) -> None:
    def bomb(depth: int) -> dict[str, Any]:
        return wish("Reader", ["spawn", *([bomb(depth - 1)] * 2 if depth else [])], ["sleep", 0.01])

    async with hub_on(LocalRuntime(), tmp_path, max_total=20, max_children=4, max_depth=2) as hub:
        report = await hub.run_agent(
            task_of("r", tmp_path, *[["spawn", bomb(4), bomb(4), bomb(4), bomb(4), bomb(4)]] * 6)
        )
        assert report.status is AgentStatus.DONE
        assert hub.counts.spawned == 21
        assert hub.counts.peak <= 4
        assert hub.living == ()
        assert "limit" in report.text


async def test_background_children_end_with_their_parent(tmp_path: Path) -> None:
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        task = task_of("r", tmp_path, ["spawn", wish("Leaf", ["sleep", 60], background=True)], ["sleep", 0.2])
        assert (await hub.run_agent(task)).status is AgentStatus.DONE
        assert hub.living == ()
    ended = [e.status for e in await events_of(hub) if isinstance(e, AgentFinished)]
    assert ended == ["cancelled", "done"]


async def test_a_child_has_at_most_its_parents_rights(tmp_path: Path) -> None:
    parent = AgentSpec(name="Main", description="", tools=("spawn_subagent", "read_file"), max_iterations=3)
    seen: list[AgentSpec] = []
    async with hub_on(LocalRuntime(), tmp_path, desk=FakeDesk(tmp_path)) as hub:
        run = asyncio.create_task(
            hub.run_agent(
                task_of("r", tmp_path, ["spawn", wish("Writer", ["sleep", 0.2])], spec=parent, mode="plan")
            )
        )
        while not run.done():
            for task in hub.living:
                if task.depth:
                    seen.append(task.spec)
                    assert task.mode == "plan"
            await asyncio.sleep(0.01)
    assert seen
    assert not set(seen[0].tools or ()) - {"spawn_subagent", "read_file"}


@pytest.mark.req("SUB-10")
async def test_tiers_map_to_models(tmp_path: Path) -> None:
    models: dict[str, str] = {}
    async with hub_on(LocalRuntime(), tmp_path, tiers={"haiku": "test/small"}) as hub:
        wishes = [wish("Leaf", ["sleep", 0.2], model=m) for m in ("haiku", "opus", "x/y")]
        task = task_of("r", tmp_path, ["spawn", *wishes], models={"action": "test/main"})
        run = asyncio.create_task(hub.run_agent(task))
        while not run.done():
            models.update({t.id: t.models[Role.ACTION] for t in hub.living if t.depth})
            await asyncio.sleep(0.01)
    assert sorted(models.values()) == ["test/main", "test/small", "x/y"]


@pytest.mark.req("SUB-09")
async def test_resume_rebuilds_the_history_from_the_transcript(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    said = (SystemMessage(stable="s"), UserMessage(content="before"))
    path.write_text("".join(TranscriptLine(at="", message=m).to_json() + "\n" for m in said))
    Inbox(tmp_path / "run" / "reports.jsonl").file(
        AgentReport(id="old", agent="Leaf", status=AgentStatus.DONE, text="x", transcript=str(path))
    )
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        run = asyncio.create_task(
            hub.run_agent(
                task_of(
                    "r",
                    tmp_path,
                    ["spawn", wish("Leaf", ["sleep", 0.3], resume="old"), wish("Leaf", resume="no")],
                )
            )
        )
        await until(lambda: any(t.id == "old" for t in hub.living))
        assert next(t.history for t in hub.living if t.id == "old") == said[1:]
        assert "no earlier sub-agent with the id no" in (await run).text


def test_the_inbox_survives_a_restart_and_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opendev.actors.inbox.KEPT", 50)  # each report is flushed to the disk
    inbox = Inbox(tmp_path / "r.jsonl")
    for number in range(55):
        inbox.file(AgentReport(id=f"a{number}", agent="Leaf", status=AgentStatus.DONE))
        inbox.collected(f"a{number}")
    assert inbox.find("a0") is None
    inbox.file(AgentReport(id="b", agent="Leaf", status=AgentStatus.DONE))
    inbox.file(AgentReport(id="c", agent="Leaf", status=AgentStatus.DONE))
    inbox.collected("b")
    assert [r.id for r in Inbox(tmp_path / "r.jsonl").waiting()] == ["c"]


class LateRay(LocalRuntime):
    """Stands in for Ray: comes up after ``delay`` seconds, or never."""

    @property
    def kind(self) -> Literal["local", "ray"]:
        return "ray"

    def __init__(self, delay: float, works: bool = True) -> None:
        super().__init__()
        self.delay, self.works, self.started = delay, works, 0

    async def start(self) -> None:
        self.started += 1
        await asyncio.sleep(self.delay)
        if not self.works:
            raise OpenDevError(ErrorKind.INFRA, "Could not start Ray: no luck.")


def auto_hub(tmp_path: Path, ray: LateRay, desk: FakeDesk | None = None) -> Hub:
    settings = HubSettings(
        run_id="auto",
        worker="support.actors:ScriptedWorker",
        model_service="support.actors:ScriptedModel",
        warm_hosts=0,
    )
    worker = {"home": str(tmp_path)}
    ports = HubPorts(
        SystemClock(), tmp_path / "run", worker, {}, specs=SPECS, desk=desk, make_ray=lambda _: ray
    )
    return Hub(settings, ports)


@pytest.mark.req("ACT-12")
async def test_auto_starts_ray_only_for_parallel_or_writing_sub_agents(tmp_path: Path) -> None:
    ray = LateRay(0.05)
    hub = auto_hub(tmp_path, ray, FakeDesk(tmp_path))
    await hub.start()
    one = wish("Leaf", ["model", "hi"])
    assert (await hub.run_agent(task_of("r", tmp_path, ["spawn", one]))).text == "done:heard: hi:"
    assert ray.started == 0
    both = await hub.run_agent(task_of("r", tmp_path, ["spawn", one, one]))
    assert both.text == "done:heard: hi:|done:heard: hi:"  # model calls went through the hub
    assert ray.started == 1
    assert len([name for name in ray.actors if "-host-" in name]) == 2
    assert hub.total[1] == 3
    await hub.stop()
    assert ray.actors == ()


async def test_auto_does_not_wait_for_ray_with_readers_and_stays_here_when_it_fails(tmp_path: Path) -> None:
    slow = LateRay(1.5)
    hub = auto_hub(tmp_path, slow)
    await hub.start()
    leaf = wish("Leaf", ["say", "x"])
    async with asyncio.timeout(1.3):
        await hub.run_agent(task_of("r", tmp_path, ["spawn", leaf, leaf]))
    await hub.stop()
    desk = FakeDesk(tmp_path)
    hub = auto_hub(tmp_path / "b", LateRay(0.0, works=False), desk)
    await hub.start()
    report = await hub.run_agent(
        task_of("r", tmp_path, ["spawn", wish("Writer", ["shell", "touch f"])], spec=MAIN)
    )
    assert report.text.startswith("done:")
    assert desk.log[0] == f"lease write {BASE}"
    assert await hub.ensure_ray() is False
    await hub.stop()
    notices = [e.text for e in await events_of(hub) if e.kind == "notice"]
    assert notices == ["Could not start Ray: no luck. All agents run in this process instead."]


async def test_the_death_of_a_ray_host_hits_only_its_own_agents_and_not_those_of_the_local_side(
    tmp_path: Path,
) -> None:
    ray = LateRay(0.0)
    hub = auto_hub(tmp_path, ray)
    await hub.start()
    leaves = ["spawn", wish("Leaf", ["sleep", 30]), wish("Leaf", ["sleep", 0.3], ["say", "fine"])]
    main = task_of("r", tmp_path, leaves, stream=True)
    run = asyncio.create_task(hub.run_agent(main))
    await until(lambda: sum(hub.host_of(t.id) is not None for t in hub.living) == 3)
    hit = next(ref for t in hub.living if t.depth and "30" in t.prompt and (ref := hub.host_of(t.id)))
    names = [ref.name for t in hub.living if (ref := hub.host_of(t.id))]
    assert len(set(names)) == 3
    assert {name.partition("-")[0] for name in names} == {"local", "ray"}
    await ray.crash(hit)
    report = await run
    assert report.status is AgentStatus.DONE
    assert report.text == "infra::|done:slept\nfine:"
    await hub.stop()


async def test_at_the_cap_of_hosts_a_tree_of_writers_ends(tmp_path: Path) -> None:
    """Every writer waits for a writer of its own: sharing is the only way on, and nobody waits for ever."""
    desk = FakeDesk(tmp_path)
    child = wish("Branch", ["spawn", wish("Branch", ["say", "leaf"])])
    async with hub_on(LateRay(0.0), tmp_path, desk=desk, cores=1, max_concurrent=2) as hub:
        async with asyncio.timeout(20):
            report = await hub.run_agent(task_of("r", tmp_path, ["spawn", child, child, child]))
        assert report.text == "|".join(["done:done:leaf::"] * 3)
        assert hub.counts.peak == 2


async def test_asked_for_by_name_a_failing_ray_is_an_error(tmp_path: Path) -> None:
    ports = HubPorts(SystemClock(), tmp_path, {}, {}, make_ray=lambda _: LateRay(0, works=False))
    hub = Hub(HubSettings(run_id="x", runtime="ray"), ports)
    with pytest.raises(OpenDevError, match="no luck"):
        await hub.start()
    await hub.stop()


async def test_a_child_has_the_time_its_parent_has_left(tmp_path: Path) -> None:
    seen: dict[str, float | None] = {}
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        for name, limit in (("tight", 50.0), ("free", None)):
            spawn = ["spawn", wish("Leaf", ["sleep", 0.1])]
            main = task_of("r", tmp_path, ["sleep", 0.3], spawn, budget={"timeout_s": limit})
            run = asyncio.create_task(hub.run_agent(main))
            await until(lambda: any(task.depth for task in hub.living))
            seen[name] = next(task.budget.timeout_s for task in hub.living if task.depth)
            await run
    assert seen["tight"] is not None
    assert 45.0 < seen["tight"] < 49.75
    assert seen["free"] == 1800.0


async def test_parents_and_children_are_known_in_a_later_process(tmp_path: Path) -> None:
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        spawn = ["spawn", wish("Leaf", ["say", "found it"])]
        await hub.run_agent(task_of("r", tmp_path, spawn, id="main-1"))
        (report,) = hub.uncollected()
    assert Inbox(tmp_path / "run" / "reports.jsonl").parents() == {report.id: "main-1"}
