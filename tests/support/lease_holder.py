"""A driver process for crash tests: takes leases, works in them, says so, and waits to be killed.

Usage: python -m support.lease_holder REPO HOME [churn] (with ``tests`` on the path). Prints one JSON line when all leases are taken;
with ``churn`` it takes and gives back leases for ever, so that a kill hits any step.
"""

import asyncio
import json
import sys
from pathlib import Path

from opendev.core.clock import SystemClock
from opendev.core.ticket import VerifyOutcome
from opendev.worktrees.keeper import Keeper
from opendev.worktrees.train import Train
from support.repos import ENV, write


async def main(repo: Path, home: Path) -> None:
    """Hold a dirty, a clean, a committed and a shared lease, and stand in the middle of a landing."""
    keeper = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)
    leases = {
        name: await keeper.lease(write=True, task=name, run_id="run1") for name in ("dirty", "clean", "done")
    }
    leases["reader"] = await keeper.lease(write=False, task="reader", run_id="run1")
    write(Path(leases["dirty"].path), {"a.py": "A = 2\n", "new.txt": "precious\n"})
    write(Path(leases["done"].path), {"b.py": "B = 2\n"})
    commit = await keeper.commit(leases["done"], "done")
    train = Train(keeper, "swarm/x", keeper.clock)
    await train.prepare("HEAD")

    async def verify(path: Path, _commit: str) -> VerifyOutcome:
        told = {name: lease.model_dump(mode="json", by_alias=True) for name, lease in leases.items()}
        sys.stdout.write(json.dumps({"leases": told, "verify": str(path)}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
        raise AssertionError

    await train.land(task="done", commit=commit, base=keeper.base, message="done", verify=verify)


async def churn(repo: Path, home: Path) -> None:
    """Six tasks that lease, write, commit and give back without end."""
    keeper = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)

    async def one(number: int) -> None:
        while True:
            lease = await keeper.lease(write=number % 3 != 0, task=f"t{number}", run_id="r")
            if lease.kind == "write":
                write(Path(lease.path), {"a.py": "A = 2\n", "new.txt": "x"})
            if lease.kind == "write" and number % 2:
                await keeper.commit(lease, "work")
            await (keeper.release(lease) if number % 2 else keeper.quarantine(lease, "churn"))

    sys.stdout.write("{}\n")
    sys.stdout.flush()
    await asyncio.gather(*(one(number) for number in range(6)))


if __name__ == "__main__":
    asyncio.run((churn if sys.argv[3:] == ["churn"] else main)(Path(sys.argv[1]), Path(sys.argv[2])))
