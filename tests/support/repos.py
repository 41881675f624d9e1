"""Small real git repositories for tests, and fingerprints of a user's checkout."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


def git(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> str:
    """Run git as the user would, without OpenDev's door; stdout without white space at the ends."""
    command = ["git", "-c", "protocol.file.allow=always", *args]
    done = subprocess.run(command, cwd=folder, env={**ENV, **(env or {})}, capture_output=True, check=False)
    assert done.returncode == 0, f"git {args} in {folder}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode(errors="surrogateescape").strip()


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Write files by relative path; None deletes one."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit_files(folder: Path, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
    """Write files and commit them; the commit."""
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def make_repo(folder: Path, files: Mapping[str, str | bytes | None] | None = None) -> Path:
    """A repository with one commit on ``main``."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    with (folder / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    default: dict[str, str | bytes | None] = {
        "a.py": "A = 1\n",
        "b.py": "B = 1\n",
        "src/c.py": "C = 1\n",
        ".gitignore": "*.log\nbuild/\n",
    }
    commit_files(folder, files or default, "first")
    return folder


def fingerprint(folder: Path) -> dict[str, Any]:
    """All of a user's checkout that OpenDev must leave alone: HEAD, index, config, foreign refs, each file's bytes and mode."""
    git_dir = Path(git(folder, "rev-parse", "--absolute-git-dir"))
    common = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    own = ("refs/opendev/", "refs/heads/opendev/", "refs/heads/swarm/")
    files: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if relative.parts[0] == ".git" and len(relative.parts) > 1:
            continue
        if path.is_symlink():
            files[str(relative)] = ("link", str(path.readlink()))
        elif path.is_file():
            files[str(relative)] = (path.stat().st_mode, path.read_bytes())
    plain = {
        name: _bytes(place / name)
        for place in (git_dir, common)
        for name in ("config", "config.worktree", "info/exclude", "packed-refs")
    }
    return {
        "head": (git_dir / "HEAD").read_bytes(),
        "index": _bytes(git_dir / "index"),
        "refs": [line for line in refs if not line.startswith(own)],
        "files": files,
        "config": plain,
        "stash": _bytes(common / "logs/refs/stash"),
    }


def exists(path: str | Path) -> bool:
    """Whether something is at ``path``."""
    return Path(path).exists()


def locks(repo: Path) -> list[str]:
    """Lock files that some git left in the repository."""
    common = Path(git(repo, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    return [str(path) for path in common.rglob("*.lock")]


def worktrees(repo: Path) -> list[str]:
    """Folders of all worktrees but the first."""
    shown = git(repo, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in shown if line.startswith("worktree ")][1:]


def tree_files(repo: Path, commit: str) -> dict[str, str]:
    """The text files of a commit."""
    listed = git(repo, "ls-tree", "-r", "--name-only", commit).splitlines()
    return {name: git(repo, "show", f"{commit}:{name}") for name in listed}


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
