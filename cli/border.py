"""The command line's border: a defect inside becomes an error like any other, so that it is told in the form the user chose."""

import contextlib
import errno
from collections.abc import Generator

import typer
from typer.exceptions import TyperException

from ..core.errors import ErrorKind, OpenDevError

_LIMITS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN}


@contextlib.contextmanager
def border() -> Generator[None]:
    """Whatever fails inside leaves as ``OpenDevError``; how typer ends a command stays as it is."""
    try:
        yield
    except (OpenDevError, typer.Abort, typer.Exit, TyperException):
        raise
    except Exception as error:
        if why := _limit(error):
            raise OpenDevError(
                ErrorKind.INFRA,
                f"The machine refused what OpenDev needs: {why}.",
                "Free memory or disk space, or raise the limit (`ulimit -a`).",
            ) from error
        raise OpenDevError(
            ErrorKind.INTERNAL,
            f"A defect of OpenDev ended the command: {type(error).__name__}: {error}.",
            "Please report it, with the command you gave.",
        ) from error


def _limit(error: Exception) -> str:
    """Why it is a limit of the machine or of the user's that ended the command; empty when it is not."""
    if isinstance(error, MemoryError):
        return "no more memory"
    if isinstance(error, OSError) and error.errno in _LIMITS:
        return str(error)
    return "no more threads" if "start new thread" in str(error) else ""
