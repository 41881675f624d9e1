"""Whose hooks act: the user's at once, a project's after consent to exactly what they run (HOK-02, CFG, T12, T16)."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opendev.configs.environment import Environment
from opendev.configs.load import Loaded, load_config
from opendev.core.errors import OpenDevError
from opendev.core.hooks import HookSet
from opendev.store.consent import agree
from opendev.tools.hook_trust import admit, digest_of, key_of
from support.hooking import hooks


def group(command: str, matcher: str = "") -> list[Any]:
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]


class Place:
    """A home and a project with settings."""

    def __init__(self, tmp: Path, mine: Any = None, theirs: Any = None) -> None:
        self.home, self.project = tmp / "home", tmp / "project"
        for folder, value in ((self.home, mine), (self.project / ".opendev", theirs)):
            folder.mkdir(parents=True, exist_ok=True)
            if value is not None:
                (folder / "settings.json").write_text(json.dumps({"hooks": value}))

    def load(self) -> Loaded:
        environment = Environment({"OPENDEV_HOME": str(self.home)})
        return load_config(project=self.project, environment=environment)

    def admitted(self) -> tuple[HookSet, tuple[str, ...]]:
        loaded = self.load()
        return admit(loaded.config.hooks, loaded.projects_hooks, self.project, self.home)

    def agree(self) -> None:
        loaded = self.load()
        agree(self.home, key_of(str(self.project)), digest_of(loaded.projects_hooks, str(self.project)))


@pytest.mark.req("HOK-02")
def test_both_files_are_read_and_neither_replaces_the_other(tmp_path: Path) -> None:
    place = Place(tmp_path, {"PreToolUse": group("mine", "*")}, {"PreToolUse": group("theirs")})
    place.agree()
    found, notes = place.admitted()
    assert [found.own.commands, found.projects.commands] == [("mine",), ("theirs",)]
    assert found.own.PreToolUse[0].matcher == ""
    assert notes == ()


@pytest.mark.req("HOK-02", "SAF-05")
def test_a_projects_do_nothing_before_consent_and_it_is_said(tmp_path: Path) -> None:
    place = Place(tmp_path, {"Stop": group("mine")}, {"SessionStart": group("touch MARK")})
    found, (note,) = place.admitted()
    assert (found.own.commands, found.projects.commands) == (("mine",), ())
    assert "touch MARK" in note
    assert "opendev hooks trust" in note
    (place.home / "trust.json").write_text("{broken")
    assert place.admitted()[0].projects.commands == ()


@pytest.mark.parametrize(
    "change",
    [
        "sed -i 's/check.sh/check.sh; touch X/' .opendev/settings.json",
        "sed -i 's/Stop/PreToolUse/' .opendev/settings.json",
        "echo touch X > check.sh",
        "rm check.sh",
        "ln -sf other.sh check.sh",
        "echo touch X > .opendev/hooks/lib/more.sh",
        "echo touch X > .opendev/hooks/new.sh",
    ],
)
@pytest.mark.req("HOK-02")
def test_any_change_of_what_would_run_takes_the_consent_back(tmp_path: Path, change: str) -> None:
    place = Place(tmp_path, None, {"Stop": group("sh check.sh")})
    (place.project / "check.sh").write_text("true")
    (place.project / "other.sh").write_text("touch X")
    (place.project / ".opendev/hooks/lib").mkdir(parents=True)
    (place.project / ".opendev/hooks/lib/more.sh").write_text("true")
    place.agree()
    assert place.admitted()[0].projects.commands == ("sh check.sh",)
    subprocess.run(["sh", "-c", change], cwd=place.project, check=True)
    found, (note,) = place.admitted()
    assert found.projects.commands == ()
    assert "as they are now" in note


@pytest.mark.parametrize(
    "command",
    [
        "./lint.js --fix",
        "node lint.js",
        'node "$OPENDEV_PROJECT_DIR/lint.js"',
        "node ${OPENDEV_PROJECT_DIR}/lint.js",
        "cd . && node 'lint.js';true",
        "CONFIG=lint.js node -",
        "node -r./lint.js x.js",
        "node lint.js " + "A" * 5_000,
        "cat x | (node lint.js)",
        "node lint.js 'open quote",
        "cat {ROOT}/lint.js",
        "bash -c 'node lint.js'",
    ],
)
def test_files_are_found_however_they_are_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "lint.js").write_text("one")
    found = hooks(("Stop", command.replace("{ROOT}", str(tmp_path))))
    before = digest_of(found, str(tmp_path))
    assert before == digest_of(found, str(tmp_path))
    (tmp_path / "lint.js").write_text("two")
    assert digest_of(found, str(tmp_path)) != before


def test_what_cannot_be_looked_at_cannot_be_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opendev.tools.hook_trust.MAX_BYTES", 10)
    place = Place(tmp_path, None, {"Stop": group("sh check.sh")})
    (place.project / "check.sh").write_text("x" * 11)
    place.agree()
    assert place.admitted()[0].projects.commands == ()


def test_the_home_folder_as_a_project_is_the_users_own(tmp_path: Path) -> None:
    place = Place(tmp_path, {"Stop": group("mine")})
    place.project, place.home = tmp_path, tmp_path / ".opendev"
    (tmp_path / "home").rename(place.home)
    found, notes = place.admitted()
    assert (found.own.commands, found.projects.commands, notes) == (("mine",), (), ())


def test_settings_from_elsewhere_are_read_and_mistakes_are_named(tmp_path: Path) -> None:
    loaded = Place(
        tmp_path, {"Stop": [{"hooks": [{"command": "x", "timeout": 9e9}]}], "Notification": []}
    ).load()
    assert loaded.config.hooks.Stop[0].hooks[0].timeout == 600
    assert any("there is no event `hooks.Notification`" in warning for warning in loaded.warnings)
    wrong: list[Any] = [
        [{"matcher": "(", "hooks": []}],
        [{"hooks": [{"command": ""}]}],
        [{"hooks": [{"command": "x", "type": "http"}]}],
        "x",
    ]
    for value in wrong:
        for mine, theirs in (({"Stop": value}, {}), ({}, {"Stop": value})):
            with pytest.raises(OpenDevError, match=r"settings.json, line 1: `hooks.Stop"):
                Place(tmp_path, mine, theirs).load()
