"""Joining somebody's Ray cluster: is it there, on which address, and why not, in plain words (ACT-11)."""

import asyncio
import ipaddress
import socket
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError

KNOCK_S = 2.0


async def knock(address: str) -> bool:
    """See whether anything listens at HOST:PORT: Ray itself takes over a minute to find that nobody does.

    Returns whether the cluster is on loopback only; Ray takes 127.0.0.1 for this machine's outer address unless it is told.
    Anything else than HOST:PORT (``auto``) is left to Ray. Raises ``OpenDevError`` (infra).
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return False
    host = host.strip("[]")
    if not await _listens(host, int(port)):
        raise OpenDevError(
            ErrorKind.INFRA,
            f"Could not join the Ray cluster at {address}: nothing listens there.",
            "Check the address of the head node, or leave it out to start a private Ray.",
        )
    return _loopback(host) and not await _listens(_outer(), int(port))


def package_folder() -> str:
    """The folder from which a process of another installation can import this package; empty for an editable install."""
    package = Path(__file__).parents[1]
    return str(package.parent) if package.name == __name__.partition(".")[0] else ""


def plain(error: BaseException) -> str:
    """One clause for what ``ray.init`` raised."""
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        return f"it runs other versions of Ray or Python than this process, and they must be the same ({text[:300]})"
    if "oken authentication" in text:
        return "it wants a token; set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to the file that holds it"
    if isinstance(error, ConnectionError) and "Failed to connect" in text:
        return (
            "it did not let this process in: the token is wrong (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN or the file RAY_AUTH_TOKEN_PATH), "
            "or what listens there is no Ray"
        )
    if isinstance(error, SystemExit):
        return "Ray gave up; the run's runtime.log says why"
    return f"{type(error).__name__}: {text[:300]}"


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(KNOCK_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _outer() -> str:
    """This machine's address on the way out, as Ray finds it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation: it is never reached
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
