"""Places that a command line names: links that lead out, settings of the agent's own, other repositories (T02, T06, T08, T11)."""

from pathlib import Path

import pytest
from opendev.core.approval import ApprovalLevel
from opendev.policy.rules import judge_command


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("places") / "w"
    for folder in ("sub", ".venv/bin"):
        (root / folder).mkdir(parents=True)
    (root / "escape").symlink_to("/etc")
    (root / "sub/up").symlink_to("../..")
    (root / "inside").symlink_to("sub")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / ".venv/bin/python").symlink_to("/bin/sh")
    (root / "python").symlink_to("/bin/sh")
    return root


def judged(command: str, root: Path) -> str:
    return judge_command(command, ApprovalLevel.AUTO, (root,), (), root).decision


@pytest.mark.req("SAF-04")
@pytest.mark.parametrize(
    "command",
    [
        "cat escape/passwd", "echo x > escape/x", "cp a escape/x", "tee escape/x", "cat < escape/passwd", "ls escape", "cat escape/*",
        "cd escape && cat passwd", "sed -i s/a/b/ escape/hosts", "find escape/ -name x", "grep -r x escape/", "tar cf x.tar escape/",
        "cat sub/up/x", "echo x > sub/up/x", "cat sub/up/../x", "echo x > dangling", "mv a dangling", "cat inside/up/x",
        "cat /proc/self/root/etc/passwd", "cat /proc/self/cwd/../x", "ln -s /etc y", "cp x .venv/bin/python", "cat ./escape/../etc/passwd",
        "cat python", "(cd escape; ls)", "bash -c 'cat escape/passwd'", "cat $(echo escape/passwd)x escape/hosts",
    ],
)  # fmt: skip
def test_a_link_that_leads_out_is_asked_about(root: Path, command: str) -> None:
    assert judged(command, root) != "allow"


@pytest.mark.req("SAF-04")
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .opendev/settings.json", "cp a .mcp.json", "sed -i s/a/b/ .opendev/permissions.json", "mkdir .opendev",
        "mv x .opendev/hooks", "tee .opendev/settings.json", "python -c \"open('.mcp.json','w')\"", "ln -s x .opendev",
        "echo x > .OpenDev/settings.json", "touch .MCP.json", "cd .opendev && echo x > settings.json", "echo x > .opendev./a",
        "git apply --directory=.opendev p", "echo x > {root}/.opendev/x", "echo x > sub/../.mcp.json", "chmod +x .opendev/hooks/x",
        "rsync a .opendev/", "install a .mcp.json", "echo x > .git/config", "rm .git", "cp x .git/hooks/y", "echo x > ../w/.git",
        "git config core.fsmonitor ./x.sh", "git config core.hooksPath ./h", "git -C .. status", "git --git-dir=../x status",
        "GIT_DIR=x git status", "git --work-tree=/ status", "git config --file .git/config core.pager x",
    ],
)  # fmt: skip
def test_settings_and_gits_own_are_asked_about_even_when_absent(root: Path, command: str) -> None:
    assert judged(command.format(root=root), root) != "allow"


@pytest.mark.req("SAF-09")
@pytest.mark.parametrize(
    "command",
    ["opendev config trust .opendev/x", "opendev hooks trust", "opendev mcp enable evil", "opendev config set approval auto", "opendev -p x",
     "opendev skills trust evil", ".venv/bin/opendev hooks trust", "python3 -m opendev hooks trust", "uv run opendev hooks trust",
     "opendev --working-dir . hooks trust", "opendev config set model 'config show'", "timeout 5 opendev mcp add x y",
     "opendev tools run read_file --args x", "bash -c 'opendev hooks trust'", "opendev config check --approve auto"],
)  # fmt: skip
def test_an_agent_cannot_give_the_consent_of_its_user(root: Path, command: str) -> None:
    assert judged(command, root) == "ask"


@pytest.mark.parametrize("command", ["opendev doctor", "opendev --version", "opendev config show", "opendev --working-dir . agents list",
                                     "grep opendev README.md", "pip install opendev", "uv add opendev"])  # fmt: skip
def test_it_may_look(root: Path, command: str) -> None:
    assert judged(command, root) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat inside/a", "echo x > inside/a", "ls sub/up/w", "cat .opendev/settings.json", "ls -la .opendev", "grep -r x .opendev",
        "timeout 5 .venv/bin/python -m pytest", ".venv/bin/python x.py", "ls -la .venv/bin/python", "cat {root}/sub/a",
        "echo .opendev", "git status", "git diff", "cat .mcp.json", "echo opendev > a", "cat .opendevrc", "cat /dev/null > a",
    ],
)  # fmt: skip
def test_what_stays_inside_passes(root: Path, command: str) -> None:
    assert judged(command.format(root=root), root) == "allow"


def test_a_root_that_is_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    assert judged("cat sub/a", alias) == "allow"
    assert judged("cat ../x", alias) == "ask"
    assert judged("cat escape/passwd", alias) == "ask"
