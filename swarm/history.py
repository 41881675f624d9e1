"""Read-only questions about commits, asked through the git door off the event loop."""

import asyncio

from ..worktrees.git import Git


class GitHistory:
    """``ports.History`` on a repository."""

    def __init__(self, git: Git) -> None:
        self._git = git

    async def resolve(self, ref: str) -> str:
        """The commit ``ref`` stands for; empty when there is none."""
        return await asyncio.to_thread(self._git.resolve, ref)

    async def is_ancestor(self, commit: str, of: str) -> bool:
        """Whether ``commit`` is reachable from ``of``."""
        return await asyncio.to_thread(self._git.test, "merge-base", "--is-ancestor", commit, of)

    async def tree(self, commit: str) -> str:
        """The tree of ``commit``: equal trees are equal content."""
        return await asyncio.to_thread(self._git.line, "rev-parse", "--verify", f"{commit}^{{tree}}")

    async def files(self, commit: str) -> tuple[str, ...]:
        """Every path of ``commit``."""
        reply = await asyncio.to_thread(
            self._git.run, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit
        )
        return reply.fields

    async def diff(self, base: str, commit: str) -> str:
        """The patch from ``base`` to ``commit``; nothing the repository names is run."""
        reply = await asyncio.to_thread(
            self._git.run,
            "diff-tree",
            "-p",
            "-r",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            base,
            commit,
        )
        return reply.out.decode(errors="replace")
