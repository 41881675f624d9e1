"""Consent is bound to content: what changed is not agreed to any more (T14, T16)."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.store.consent import CONSENT, agree, agreed, foreign_files, read_foreign, standing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    own = tmp_path / "project/.opendev"
    for name in (
        "agents/deep/a.md",
        "skills/s/SKILL.md",
        "permissions.json",
        "settings.json",
        "agents/not.txt",
    ):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(name)
    return tmp_path / "project"


@pytest.mark.req("SAF-09")
def test_a_consent_holds_for_this_content_in_this_place(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    files = foreign_files(project)
    assert [str(path.relative_to(project / ".opendev")) for path in files] == [
        "permissions.json", "agents/deep/a.md", "skills/s/SKILL.md",
    ]  # fmt: skip
    agent = files[1]
    assert standing(home, agent) == "not trusted"
    content, digest = read_foreign(agent)
    agree(home, str(agent), digest)
    assert (content, standing(home, agent)) == (b"agents/deep/a.md", "trusted")
    assert (home / CONSENT).stat().st_mode & 0o777 == 0o600
    agent.write_text("other")
    assert standing(home, agent) == "changed"
    agent.write_bytes(content)
    assert standing(home, agent) == "trusted"
    other = tmp_path / "copy"
    project.rename(other)
    assert standing(home, other / agent.relative_to(project)) == "not trusted"
    agree(home, str(agent), None)
    assert agreed(home) == {}


def test_a_link_cannot_be_agreed_to(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x")
    link = project / ".opendev/agents/link.md"
    link.symlink_to(tmp_path / "elsewhere")
    assert link in foreign_files(project)
    with pytest.raises(OpenDevError, match="behind a link") as caught:
        read_foreign(link)
    assert caught.value.info.kind is ErrorKind.CONFIG
    agree(tmp_path / "home", str(link), "0")
    assert standing(tmp_path / "home", link) == "changed"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": []}', '{"files": {"a": 1}}'])
def test_a_consent_file_that_cannot_be_read_agrees_to_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / CONSENT).write_text(text)
    assert agreed(tmp_path) == {}
