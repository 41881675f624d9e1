"""The Ray session's folder and the quiet standard streams (ray.md rules 1-3)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.actors import ray_session
from opendev.core.errors import OpenDevError

DAY = 86_400


def test_folders_are_private_and_short_and_the_token_is_0600(tmp_path: Path) -> None:
    base = ray_session.base_dir(tmp_path)
    session = ray_session.create(base)
    modes = [p.stat().st_mode & 0o777 for p in (base, session.path, session.cwd, session.token)]
    assert modes == [0o700, 0o700, 0o700, 0o600]
    assert list(session.cwd.iterdir()) == []
    assert len(session.token.read_text()) == 64
    assert len(str(ray_session.base_dir())) <= 45
    session.remove()
    assert list(base.iterdir()) == []


def test_the_sweep_removes_only_old_folders_of_dead_owners(tmp_path: Path) -> None:
    base = ray_session.base_dir(tmp_path)
    mine, orphan, young = (ray_session.create(base) for _ in range(3))
    (orphan.path / "owner").write_text(f"{os.getpid()} 1")  # a later process got the number
    (young.path / "owner").write_text("garbage")
    now = mine.path.stat().st_mtime
    for old in (mine, orphan):
        os.utime(old.path, (now - 2 * DAY, now - 2 * DAY))
    assert ray_session.sweep(base, now) == (orphan.path,)
    assert mine.path.exists()
    assert young.path.exists()


def test_a_base_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"od-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(OpenDevError, match="belongs to somebody else or is no folder"):
        ray_session.base_dir(tmp_path)


@pytest.mark.slow
def test_quiet_stdio_sends_every_stray_write_to_the_log(tmp_path: Path) -> None:
    program = f"""
import os, subprocess, sys
from pathlib import Path
from opendev.actors.ray_runtime import quiet_stdio
out, err = quiet_stdio(Path({str(tmp_path / "log" / "x.log")!r}))
print("stray print", flush=True)
os.write(2, b"stray write\\n")
subprocess.run(["echo", "stray child"])
out.write("real out\\n")
err.write("real err\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("real out\n", "real err\n")
    log = tmp_path / "log" / "x.log"
    assert sorted(log.read_text().splitlines()) == ["stray child", "stray print", "stray write"]
    assert log.stat().st_mode & 0o777 == 0o600
