"""The command line's border: a defect inside becomes an error like any other, so that it is told in the form the user chose."""

import contextlib
from collections.abc import Generator

import typer
from typer.exceptions import TyperException

from ..core.errors import ErrorKind, OpenDevError


@contextlib.contextmanager
def border() -> Generator[None]:
    """Whatever fails inside leaves as ``OpenDevError``; how typer ends a command stays as it is."""
    try:
        yield
    except (OpenDevError, typer.Abort, typer.Exit, TyperException):
        raise
    except Exception as error:
        raise OpenDevError(
            ErrorKind.INTERNAL,
            f"A defect of OpenDev ended the command: {type(error).__name__}: {error}.",
            "Please report it, with the command you gave.",
        ) from error
