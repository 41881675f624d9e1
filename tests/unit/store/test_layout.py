"""Where state lives: folders by project and run, private, and checked before work starts (CFG-07)."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.store.layout import Layout


@pytest.mark.req("CFG-07")
def test_a_project_is_its_path_with_hyphens(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    project = tmp_path / "my" / "app"
    project.mkdir(parents=True)
    folder = layout.project(project)
    assert folder == tmp_path / "home" / "projects" / str(project).replace("/", "-")
    assert folder.name.startswith("-")
    assert folder.is_dir()
    (project / "sub").mkdir()
    assert layout.project(project / "sub") != folder
    (tmp_path / "link").symlink_to(project)
    assert layout.project(tmp_path / "link") == folder


def test_run_folders_are_private_and_the_settings_file_is_not_made(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    assert layout.run("r1") == layout.runs() / "r1"
    assert oct(layout.run("r1").stat().st_mode & 0o777) == "0o700"
    assert layout.settings() == tmp_path / "home" / "settings.json"
    assert not layout.settings().exists()


def test_a_root_that_can_be_written_passes_and_keeps_no_probe(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.check_writable()
    assert list(layout.home.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "/proc/nothing"])
def test_a_root_that_cannot_be_written_is_told_before_work_starts(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("no folder")
    home = tmp_path / place
    with pytest.raises(OpenDevError, match=str(home)) as caught:
        Layout(home).check_writable()
    assert caught.value.info.kind is ErrorKind.INFRA
    assert "OPENDEV_HOME" in caught.value.info.hint
