"""A Ray cluster of somebody else: `ray start --head` on loopback with a token, in a folder of its own; and a driver that uses it.

``python -m support.ray_cluster RUN``: joins the cluster named by ``ADDRESS``, starts one actor, prints where it lives, and
after a line on standard input whether it still answers.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from opendev.actors.ray_runtime import RayRuntime
from opendev.tools.shell.reap import Proc, family, send

RAY = Path(sys.executable).with_name("ray")


@dataclass(frozen=True)
class Cluster:
    """Its address, what a driver needs in its environment, and the mark that its processes carry."""

    address: str
    env: dict[str, str]
    marker: dict[str, str]

    @property
    def processes(self) -> tuple[Proc, ...]:
        """All living processes of it, workers of drivers included."""
        return family(marker=self.marker)


@contextlib.contextmanager
def running_cluster(place: Path) -> Generator[Cluster]:
    """A head node with two CPUs; only what it started is ended."""
    token = place / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    marker = {"TEST_CLUSTER": secrets.token_hex(8)}
    settings = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_memory_monitor_refresh_ms": "0",
    }
    command = [
        *(RAY, "start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(port)),
        *("--temp-dir", str(place), "--num-cpus", "2", "--object-store-memory", "80000000", "--no-monitor"),
        *("--include-dashboard=false", "--include-log-monitor=false"),
    ]
    base = {"PATH": os.defpath, "HOME": str(place)}
    head = subprocess.Popen(
        command,
        cwd=place,
        env=base | settings | env | marker,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert head.stdout is not None
    try:
        lines: list[str] = []
        for line in head.stdout:
            lines.append(line)
            if "runtime started" in line:
                break
        else:
            raise AssertionError("".join(lines))
        yield Cluster(f"127.0.0.1:{port}", env, marker)
    finally:
        head.terminate()
        head.stdout.close()
        head.wait()
        for process in family(marker=marker):
            send(process, signal.SIGKILL)


async def _drive(address: str, run: str) -> None:
    runtime = RayRuntime(run_id=run, address=address)
    await runtime.start()
    try:
        probe = await runtime.spawn("support.actors:Probe", name="probe")
        print(json.dumps(await probe.ask("where") | await probe.ask("ping")), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps(await probe.ask("echo", "still here")), flush=True)  # noqa: T201
    finally:
        await runtime.stop()


if __name__ == "__main__":
    asyncio.run(_drive(*sys.argv[1:3]))
