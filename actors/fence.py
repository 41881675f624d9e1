"""Keeps the git commands of an agent off the user's refs: a hook in its environment lets only its own branch move (swarm.md 3.1, 3.2).

A worktree shares all refs but HEAD with the user's checkout, so an innocent `git switch -c`, `git tag` or `git stash` in it, also one
inside of a script that no policy reads, would change the user's repository. Other repositories (a project's own git tests) keep
their hooks. It prevents accidents; against malice stand the policy and the sandbox of the machine.
"""

from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.lease import Lease
from ..store.atomic import write_atomic

# every hook that git may run for a command inside of a working tree
_NAMES = """
applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase
post-checkout post-merge pre-push post-rewrite reference-transaction post-index-change pre-auto-gc sendemail-validate
"""
_HOOK = """\
#!/bin/sh
name=${0##*/}
common=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || exit 0
if [ "$common" != "$OPENDEV_GIT_COMMON" ]; then
    own=$(GIT_CONFIG_COUNT=0 git config --type=path core.hooksPath) || own=$common/hooks
    [ -x "$own/$name" ] && exec "$own/$name" "$@"
    exit 0
fi
[ "$name" = reference-transaction ] && [ "$1" = prepared ] || exit 0
while read -r _ _ ref; do
    case $ref in
        "$OPENDEV_GIT_BRANCH" | refs/worktree/* | refs/bisect/* | refs/rewritten/*) ;;
        refs/*)
            echo "OpenDev: $ref belongs to the user. Leave branches, tags and the stash alone; your changes are committed for you." >&2
            exit 1
            ;;
    esac
done
"""


def fence(folder: Path, lease: Lease) -> dict[str, str]:
    """The environment of an agent that works in ``lease``; the hooks are written to ``folder``. Raises ``OpenDevError`` (infra, git)."""
    for name in _NAMES.split():
        if not (folder / name).exists():
            write_atomic(folder / name, _HOOK.encode(), 0o700)
    try:
        pointer = (Path(lease.path) / ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise OpenDevError(ErrorKind.GIT, f"The folder {lease.path} is no worktree: {error}.") from error
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(folder),
        "OPENDEV_GIT_COMMON": str(Path(pointer.removeprefix("gitdir:").strip()).parent.parent),
        "OPENDEV_GIT_BRANCH": f"refs/heads/{lease.branch}" if lease.branch else "none",
    }
