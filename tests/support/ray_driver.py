"""A driver program: a hub on Ray, run with a decoy folder as cwd. ``python ray_driver.py HOME`` kills a worker, then prints what
driver and worker imported and which sockets listen, as one JSON line."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from opendev.actors.hub import Hub
from opendev.actors.ray_runtime import RayRuntime
from opendev.actors.sides import HubPorts, HubSettings
from opendev.cli.stdio import own_stdio
from opendev.core.clock import SystemClock

RUN = "driverrun"


async def main(home: Path, out: TextIO) -> None:
    runtimes: list[RayRuntime] = []

    def make_ray(on_session: Callable[[Path], None]) -> RayRuntime:
        runtimes.append(RayRuntime(run_id=RUN, on_session=on_session))
        return runtimes[0]

    settings = HubSettings(
        run_id=RUN,
        runtime="ray",
        warm_hosts=0,
        worker="support.actors:ScriptedWorker",
        model_service="support.actors:ScriptedModel",
    )
    ports = HubPorts(SystemClock(), home / "run", {"home": str(home)}, {}, make_ray=make_ray)
    hub = Hub(settings, ports)
    await hub.start()
    try:
        probe = await runtimes[0].spawn("support.actors:Probe", name="probe")
        where = await probe.ask("where")
        os.kill((await probe.ask("ping"))["pid"], 9)  # Ray tells about it on fd 1
        await asyncio.sleep(1.0)
        found = {
            "worker": where,
            "driver": sys.path,
            "session": str(runtimes[0].session),
            "listen": listening(),
        }
        out.write(json.dumps(found) + "\n")
    finally:
        await hub.stop()


def listening() -> list[str]:
    """Addresses (hex, as in /proc/net/tcp) on which processes of this run listen."""
    inodes: set[str] = set()
    for entry in Path("/proc").iterdir():
        try:
            if f"OPENDEV_RUN={RUN}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            links = [str(fd.readlink()) for fd in (entry / "fd").iterdir()]
            inodes |= {link[8:-1] for link in links if link.startswith("socket:")}
        except OSError:
            continue
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return sorted(found)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    with own_stdio() as stdio, stdio.diverted(place / "driver.log"):
        asyncio.run(main(place, stdio.out))
