"""The Ray session's folder: private, short, removed or swept (ray.md rules 1-2)."""

import os
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
