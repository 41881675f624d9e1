"""Which addresses tools may reach: http and https, and public hosts only unless the user allows private ones (WEB-01)."""

import asyncio
import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from ...core.errors import ErrorKind, OpenDevError

_URL_CHARS = 4_000
_LOOKUP_S = 10.0
_HINT = "Only the user can allow private addresses: opendev config set web.allow_private true."


def parse_url(url: str) -> SplitResult:
    """The parts of an http or https URL with a host. Raises ``OpenDevError`` (tool) for anything else."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise OpenDevError(ErrorKind.TOOL, f"{url[:200]!r} is not a URL ({error}).") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or len(url) > _URL_CHARS:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{url[:200]!r} is not an address of the web.",
            "Give a whole URL that begins with http:// or https://.",
        )
    if parts.username or parts.password:
        raise OpenDevError(ErrorKind.DENIED, "URLs with a user name or a password in them are not fetched.")
    return parts


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet; addresses that wrap another one are judged by it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


async def reachable(host: str, port: int, *, allow_private: bool) -> tuple[str, ...]:
    """The IP addresses of ``host``. A name is refused when any of its addresses is private.

    Raises:
        OpenDevError: ``DENIED`` for a private address, ``NOT_FOUND`` when the name has none.
    """
    try:
        async with asyncio.timeout(_LOOKUP_S):
            rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise OpenDevError(
            ErrorKind.NOT_FOUND,
            f"The host {host} cannot be found ({error or 'no answer'}).",
            "Check the name; the machine may be offline.",
        ) from error
    addresses = tuple(dict.fromkeys(str(row[4][0]) for row in rows))
    private = [] if allow_private else [address for address in addresses if not is_public(address)]
    if private:
        named = private[0] if private[0] == host else f"{host} ({private[0]})"
        raise OpenDevError(ErrorKind.DENIED, f"{named} is a private address and is not fetched.", _HINT)
    return addresses


async def require_reachable(url: str, *, allow_private: bool) -> str:
    """``url`` itself, without white space around it, when it may be fetched. Raises ``OpenDevError`` otherwise."""
    parts = parse_url(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    await reachable(parts.hostname or "", port, allow_private=allow_private)
    return url.strip()
