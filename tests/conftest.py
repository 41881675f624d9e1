"""Shared fixtures. Ray is started once a test session, and only for tests that ask for it (ray.md rule 21)."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opendev.actors.local_runtime import LocalRuntime
from opendev.actors.ray_runtime import RayRuntime
from opendev.core.ids import new_id
from opendev.core.ports import Runtime
from opendev.llm.litellm_client import load_litellm
from opendev.llm.openai_direct import load_openai
from support.runtimes import SharedRuntime


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All Ray tests go to one process of ``pytest -n``: they share one Ray, and two at once would starve the machine. So do those
    that import litellm: that costs each process five seconds."""
    for item in items:
        if item.get_closest_marker("ray"):
            item.add_marker(pytest.mark.xdist_group("ray"))
        elif "litellm_loaded" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("litellm"))
        group = item.get_closest_marker("xdist_group")
        if group and getattr(config.option, "loadgroup", None):
            # xdist 3.8 writes the group to a field that pytest 9.2 no longer reads
            object.__setattr__(item, "_id", f"{item.nodeid}@{group.args[0]}")


@pytest.fixture(scope="session")
def litellm_loaded() -> None:
    """Once, before a run of this process: a run's own preloading thread would outlive a short test."""
    load_litellm()


@pytest.fixture(scope="session")
def openai_loaded() -> None:
    """The same for the models of a server of one's own."""
    load_openai()


@pytest.fixture(scope="session")
def ray_session() -> Iterator[RayRuntime]:
    """A private local Ray whose workers can import ``support``."""
    runtime = RayRuntime(run_id=f"tests-{new_id()}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        with ThreadPoolExecutor(1) as thread:  # the test that asks may be inside an event loop already
            thread.submit(asyncio.run, runtime.start()).result()
            try:
                yield runtime
            finally:
                thread.submit(asyncio.run, runtime.stop()).result()


@pytest.fixture(params=["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[Runtime]:
    """Each test that uses it runs in both runtimes; its actors are ended after it."""
    made = (
        LocalRuntime() if request.param == "local" else SharedRuntime(request.getfixturevalue("ray_session"))
    )
    await made.start()
    yield made
    await made.stop()
