"""Hosts: writers alone, readers shared at the cap, warm ones kept, the dead forgotten (ray.md rule 12)."""

import asyncio

import pytest
from opendev.actors import pool as pool_module
from opendev.actors.local_runtime import LocalRuntime
from opendev.actors.pool import HostPool, PoolPlan
from opendev.core.errors import OpenDevError
from opendev.core.mail import Down
from support.runtimes import PROBE


class Heard:
    def __init__(self) -> None:
        self.downs: list[Down] = []

    async def __call__(self, down: Down) -> None:
        self.downs.append(down)


def pool(
    runtime: LocalRuntime,
    cap: int,
    warm: int = 0,
    heard: Heard | None = None,
    share_from: int | None = None,
    waiting: frozenset[str] = frozenset(),
) -> HostPool:
    """``waiting``: agents that wait for others."""
    plan = PoolPlan(PROBE, (), cap=cap, warm=warm, share_from=share_from)
    return HostPool(runtime, plan, heard or Heard(), lambda agent: agent not in waiting)


async def test_readers_share_evenly_at_the_cap_and_leave_writers_alone() -> None:
    hosts = pool(LocalRuntime(), cap=3)
    writer = await hosts.acquire("w", exclusive=True)
    readers = [await hosts.acquire(f"r{n}", exclusive=False) for n in range(6)]
    assert writer not in readers
    assert sorted(len(h.agents) for h in set(readers)) == [3, 3]
    assert len(hosts.pids) == 3
    await hosts.close()
    assert hosts.pids == ()


@pytest.mark.req("ACT-06")
async def test_at_the_cap_a_writer_waits_for_a_host_that_will_be_free() -> None:
    hosts = pool(LocalRuntime(), cap=2, waiting=frozenset({"parent"}))
    parent = await hosts.acquire("parent", exclusive=True)
    reader = await hosts.acquire("r1", exclusive=False)
    assert await hosts.acquire("r2", exclusive=False) is reader
    late = asyncio.create_task(hosts.acquire("w", exclusive=True, above=frozenset({"parent"})))
    await asyncio.sleep(0.02)
    hosts.release(reader, "r1")
    await asyncio.sleep(0.02)
    assert not late.done()
    hosts.release(reader, "r2")
    assert await late is reader
    reading = asyncio.create_task(hosts.acquire("r3", exclusive=False))  # a writer's host is not for readers
    await asyncio.sleep(0.02)
    assert not reading.done()
    hosts.release(reader, "w")
    assert await reading is reader
    assert parent.agents == {"parent"}
    await hosts.close()


async def test_where_every_host_waits_for_others_a_writer_joins_its_own_parent() -> None:
    waiting = set[str]()
    hosts = HostPool(LocalRuntime(), PoolPlan(PROBE, (), cap=2), Heard(), lambda agent: agent not in waiting)
    await hosts.acquire("stranger", exclusive=True)
    parent = await hosts.acquire("parent", exclusive=True)
    late = asyncio.create_task(hosts.acquire("w", exclusive=True, above=frozenset({"parent"})))
    await asyncio.sleep(0.02)
    assert not late.done()
    waiting |= {"stranger", "parent"}
    hosts.stir()
    assert await late is parent
    hosts.release(parent, "w")
    assert parent.exclusive  # its first agent is still in it
    await hosts.close()
    with pytest.raises(OpenDevError, match="runtime was ended"):
        await hosts.acquire("x", exclusive=True)


async def test_a_warm_host_is_adopted_and_replaced_and_extra_idle_ones_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "IDLE_S", 0.05)
    runtime = LocalRuntime()
    hosts = pool(runtime, cap=4, warm=1)
    hosts.warm()
    await asyncio.sleep(0.05)
    names = set(runtime.actors)
    assert len(names) == 1
    host = await hosts.acquire("a", exclusive=True)
    assert {host.ref.name} == names
    await asyncio.sleep(0.05)
    assert len(runtime.actors) == 2
    hosts.release(host, "a")
    await asyncio.sleep(0.2)
    assert len(runtime.actors) == 1
    await hosts.close()


async def test_a_dead_host_is_told_with_its_agents_and_not_used_again() -> None:
    runtime, heard = LocalRuntime(), Heard()
    hosts = pool(runtime, cap=1, heard=heard)
    host = await hosts.acquire("a", exclusive=False)
    await hosts.acquire("b", exclusive=False)
    await runtime.crash(host.ref)
    assert [d.agents for d in heard.downs] == [("a", "b")]
    assert (await hosts.acquire("c", exclusive=False)) is not host
    await hosts.close()


async def test_a_host_that_cannot_start_is_an_error_for_whoever_needs_it() -> None:
    hosts = HostPool(LocalRuntime(), PoolPlan(PROBE, ("broken",), cap=2, warm=1), Heard(), lambda _: True)
    hosts.warm()
    await asyncio.sleep(0.02)
    with pytest.raises(OpenDevError, match="broken on purpose"):
        await hosts.acquire("a", exclusive=True)
    await hosts.close()


async def test_readers_share_as_soon_as_each_core_has_a_host_and_the_pool_does_not_overshoot() -> None:
    runtime = LocalRuntime()
    hosts = pool(runtime, cap=8, warm=2, share_from=2)
    hosts.warm()
    readers = await asyncio.gather(*(hosts.acquire(f"r{n}", exclusive=False) for n in range(8)))
    assert sorted(len(h.agents) for h in set(readers)) == [4, 4]
    await asyncio.sleep(0.05)
    assert len(runtime.actors) == 4  # two at work, two idle again for whoever comes next
    await hosts.close()


async def test_cold_readers_wait_for_one_host_a_core_and_spread_over_them() -> None:
    runtime = LocalRuntime()
    hosts = pool(runtime, cap=8, share_from=2)
    readers = await asyncio.gather(*(hosts.acquire(f"r{n}", exclusive=False) for n in range(4)))
    assert sorted(len(h.agents) for h in set(readers)) == [2, 2]
    await hosts.close()


async def test_writers_get_processes_of_their_own_and_do_not_count_as_shared() -> None:
    hosts = pool(LocalRuntime(), cap=8, share_from=2)
    writers = {(await hosts.acquire(f"w{n}", exclusive=True)).ref.name for n in range(4)}
    readers = {(await hosts.acquire(f"r{n}", exclusive=False)).ref.name for n in range(4)}
    assert (len(writers), len(readers)) == (4, 2)
    assert not writers & readers
    await hosts.close()


@pytest.mark.req("ACT-02")
async def test_types_of_agents_are_in_different_processes_below_the_cap() -> None:
    hosts = pool(LocalRuntime(), cap=4, share_from=2)
    kinds = ["Planner", "Code-Explorer", "PR-Reviewer", "Code-Explorer", "Code-Explorer", "Security-Reviewer"]
    given = [(await hosts.acquire(f"{kind}-{n}", exclusive=False, kind=kind)) for n, kind in enumerate(kinds)]
    names = [host.ref.name for host in given]
    assert len(set(names[:4])) == 4  # the second Code-Explorer has a core of its own, too
    assert names[4] in (names[1], names[3])  # the third shares with its like
    assert len(hosts.pids) == 4  # at the cap any reader is shared
    await hosts.close()
