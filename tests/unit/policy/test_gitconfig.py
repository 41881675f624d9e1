"""A repository whose own configuration names programs: a reading git command is asked about (T08, T10)."""

import subprocess
from pathlib import Path

import pytest
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.policy.gitconfig import judge_git, names_programs
from opendev.tools.run_command import TOOL

SEMI = ApprovalLevel.SEMI_AUTO


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path / "r"], check=True)
    return tmp_path / "r"


def add(repo: Path, text: str) -> None:
    with (repo / ".git/config").open("a") as file:
        file.write(text + "\n")


@pytest.mark.req("SAF-04")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[core]\n\tfsmonitor = ./x.sh", "core.fsmonitor"),
        ("[CORE] FSMonitor = \"./x.sh\"", "core.fsmonitor"),
        ("[core]\n\tfsmonitor = .\\\n/x.sh", "core.fsmonitor"),
        ("[diff]\n\texternal = ./x", "diff.external"),
        ('[diff "a.b"]\n\ttextconv = ./x', "diff.a.b.textconv"),
        ('[filter "e"]\n\tclean = ./x', "filter.e.clean"),
        ('[filter "e"]\n\tprocess = ./x', "filter.e.process"),
        ("[gpg]\n\tprogram = ./x", "gpg.program"),
        ("[include]\n\tpath = more", "include.path"),
        ('[includeIf "gitdir:/"]\n\tpath = more', "includeif.gitdir:/.path"),
        ("[core]\n\tsshCommand = ./x", "core.sshcommand"),
        ("[core]\n\tworktree = /", "core.worktree"),
        ("[core]\n\tfsmonitor = true\n\thooksPath = .husky", ""),
        ('[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process', ""),
        ('[filter "c"]\n\tclean = "git-crypt clean"\n[diff "p"]\n\ttextconv = exiftool', ""),
        ('[filter "c"]\n\tclean = git-lfs clean; ./x', "filter.c.clean"),
        ('[filter "c"]\n\tclean = sh x', "filter.c.clean"),
        ('[user]\n\tname = x\n[remote "o"]\n\turl = https://x\n[alias]\n\tst = !./x', ""),
    ],
)  # fmt: skip
def test_what_counts(repo: Path, text: str, key: str) -> None:
    assert names_programs(repo) == ""
    add(repo, text)
    assert names_programs(repo) == key
    (repo / "sub").mkdir()
    assert names_programs(repo / "sub") == key
    for command in ("git status", "cd . && git diff", "(git log -p)"):
        assert judge_git(command, SEMI, repo).decision == ("ask" if key else "allow")
        assert judge_git(command, ApprovalLevel.AUTO, repo).decision == "allow"
    assert judge_git("ls; echo git", SEMI, repo).decision == "allow"


def test_the_hook_that_git_status_runs(repo: Path) -> None:
    hooks = repo / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").write_text("#!/bin/sh")
    (hooks / "pre-commit").chmod(0o755)
    assert names_programs(repo) == ""
    (hooks / "post-index-change").write_text("#!/bin/sh")
    (hooks / "post-index-change").chmod(0o755)
    assert names_programs(repo) == "post-index-change"
    add(repo, "[core]\n\thooksPath = h")
    assert names_programs(repo) == ""
    (repo / "h").mkdir()
    (hooks / "post-index-change").rename(repo / "h/post-index-change")
    assert names_programs(repo) == "post-index-change"
    (repo / "h/post-index-change").unlink()
    add(repo, '[hook "x"]\n\tevent = post-index-change\n\tcommand = ./x')
    assert names_programs(repo) == "post-index-change"


def test_a_linked_worktree_and_a_pointer_that_leads_nowhere(repo: Path, tmp_path: Path) -> None:
    for command in (
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", tmp_path / "w"],
    ):
        subprocess.run(["git", "-C", repo, *command], check=True)
    assert names_programs(tmp_path / "w") == ""
    add(repo, "[core]\n\tfsmonitor = ./x.sh")
    assert names_programs(tmp_path / "w") == "core.fsmonitor"
    (tmp_path / "w/.git").write_text("gitdir: ../nowhere\n")
    assert names_programs(tmp_path / "w") == ""  # git itself refuses to work there
    assert names_programs(tmp_path) == ""


def test_the_gate_asks(repo: Path) -> None:
    gate = Gate(level=SEMI, mode=Mode.NORMAL, root=repo, scope=Scope())
    args = TOOL.args.model_validate({"command": "git status"})
    assert gate.judge(TOOL, args).decision == "allow"
    add(repo, "[core]\n\tfsmonitor = ./x.sh")
    found = gate.judge(TOOL, args)
    assert (found.decision, found.layer) == ("ask", "repository")
