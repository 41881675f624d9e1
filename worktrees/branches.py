"""OpenDev's branches: deleted only when their work is proven to be elsewhere, by reachability or by a landed commit's trailer."""

from . import names
from .repository import Repository


def delete_proven(repo: Repository, branch: str, into: str) -> str:
    """Delete the branch (short name) if that loses nothing; what happened, as a sentence. The caller holds the repository lock."""
    ref = f"refs/heads/{branch}"
    tip = repo.admin.resolve(ref)
    if not tip:
        return f"branch {branch} does not exist"
    if not ref.startswith(names.BRANCHES):
        return f"branch {branch} kept: it is not one of OpenDev's"
    if (place := repo.checked_out().get(branch)) is not None:
        return f"branch {branch} kept: it is checked out in {place}"
    if not (_contained(repo, tip) or _squashed(repo, tip, into)):
        return f"branch {branch} kept: its commit {tip[:12]} is not merged"
    repo.admin.run("update-ref", "-d", ref, tip)
    return f"branch {branch} deleted: its work is merged"


def _contained(repo: Repository, tip: str) -> bool:
    """Whether a ref that is no working branch of an agent holds the commit."""
    refs = repo.admin.run("for-each-ref", "--contains", tip, "--format=%(refname)").text.split()
    return any(not ref.startswith(names.BRANCHES) for ref in refs)


def _squashed(repo: Repository, tip: str, into: str) -> bool:
    """Whether a landed commit on ``into`` says that it squashes ``tip``."""
    if not into or not repo.admin.resolve(f"refs/heads/{into}"):
        return False
    trailer = f"{names.SOURCE_TRAILER}: {tip}"
    shown = repo.admin.run("log", "-F", f"--grep={trailer}", "--format=%B", "-z", f"refs/heads/{into}", "--")
    return any(trailer in message.splitlines() for message in shown.fields)
