"""Installed plugins: copied whole or not at all, bounded, nothing but Markdown parts, no way out of their folder (CFG-07)."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.store import plugins as room
from opendev.store.plugins import install, plugins, remove


def plugin(folder: Path, **files: str) -> Path:
    for name, content in {"agents/a.md": "x", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.mark.req("CFG-07")
def test_a_folder_is_installed_privately_listed_and_removed(tmp_path: Path) -> None:
    home, source = (
        tmp_path / "home",
        plugin(tmp_path / "kit", **{"skills/s/SKILL.md": "s", "other/x.sh": "no"}),
    )
    (source / "agents" / "out.md").symlink_to("/etc/passwd")
    made = install(home, source)
    assert made.holds == {"agents": 1, "skills": 1}
    files = [path.relative_to(made.folder).as_posix() for path in made.folder.rglob("*") if path.is_file()]
    assert sorted(files) == ["agents/a.md", "skills/s/SKILL.md"]
    assert made.folder.stat().st_mode & 0o077 == 0
    assert plugins(home) == (made,)
    with pytest.raises(OpenDevError, match="installed already"):
        install(home, source)
    remove(home, "kit")
    assert plugins(home) == ()
    assert list((home / "plugins").iterdir()) == []


def test_what_is_no_plugin_or_too_large_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(room, "MAX_BYTES", 10)
    monkeypatch.setattr(room, "MAX_FILES", 3)
    many = plugin(tmp_path / "many", **{f"agents/{number}.md": "" for number in range(5)})
    for source, why in (
        (tmp_path / "empty", "is no plugin"),
        (tmp_path / "none", "is no plugin"),
        (plugin(tmp_path / ".hidden"), "is no plugin"),
        (plugin(tmp_path / "heavy", **{"agents/b.md": "x" * 20}), "too large"),
        (many, "too large"),
    ):
        with pytest.raises(OpenDevError, match=why) as caught:
            install(home, source)
        assert caught.value.info.kind is ErrorKind.USAGE
    assert not (home / "plugins").exists()
    for name in ("../home", "", "nobody"):
        with pytest.raises(OpenDevError, match="no plugin"):
            remove(home, name)
    assert tmp_path.exists()
