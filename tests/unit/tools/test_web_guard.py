"""Which addresses web tools reach, and the proxy that holds every connection to it (WEB-01)."""

import asyncio
from collections.abc import Iterator

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools.web import addresses
from opendev.tools.web.addresses import is_public, parse_url, require_reachable
from opendev.tools.web.guard import Guard
from opendev.tools.web.plain import PlainEngine
from support.web_pages import WebPages


@pytest.fixture(scope="module")
def site() -> Iterator[WebPages]:
    with WebPages() as pages:
        yield pages


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::a00:1", False),
        ("2002:7f00:1::", False),
        ("ff02::1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example/", "file:///etc/passwd", "javascript:1", "a.example", "http://", "http://[::1", "http://a:99999/",
     "data:text/html,x", "", "http://a.example/" + "x" * 5_000],
)  # fmt: skip
def test_only_web_addresses_are_taken(url: str) -> None:
    with pytest.raises(OpenDevError, match=r"address of the web|is not a URL"):
        parse_url(url)


def test_passwords_in_addresses_are_refused() -> None:
    with pytest.raises(OpenDevError) as caught:
        parse_url("http://user:secret@a.example/")
    assert caught.value.info.kind is ErrorKind.DENIED
    assert "secret" not in str(caught.value)


@pytest.mark.req("WEB-01")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "169.254.169.254"]
)
async def test_private_hosts_are_refused_also_by_name(host: str) -> None:
    with pytest.raises(OpenDevError, match=r"private address|cannot be found"):
        await require_reachable(f"http://{host}:1/", allow_private=False)


async def test_an_allowed_host_passes() -> None:
    assert await require_reachable(" http://127.0.0.1:1/x ", allow_private=True) == "http://127.0.0.1:1/x"


async def _say(guard: Guard, text: str) -> bytes:
    host, _, port = guard.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text.encode())
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


@pytest.mark.req("WEB-01")
async def test_the_guard_refuses_private_hosts_in_both_forms(site: WebPages) -> None:
    before = list(site.asked)
    port = site.url.rpartition(":")[2]
    async with Guard() as guard:
        for text in (
            f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n",
            f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
        ):
            assert (await _say(guard, text)).startswith(b"HTTP/1.1 403")
        refusal = guard.refusal("http://x/")
        assert refusal is not None
        assert refusal.info.kind is ErrorKind.DENIED
        assert await _say(guard, "nonsense\r\n\r\n") == b""
        assert await _say(guard, "GET /direct HTTP/1.1\r\n\r\n") == b""
        for _ in range(30):
            await _say(guard, f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n")
        assert len(guard.refused) <= 20
    assert site.asked == before


async def test_the_guard_passes_on_and_ends_with_its_block(site: WebPages) -> None:
    async with Guard(allow_private=True) as guard:
        answer = await _say(
            guard, f"GET {site.url}/data.json HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n\r\n"
        )
        assert answer.endswith(b'{"a": [1, 2]}')
        address = guard.url
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))


async def test_the_bytes_of_a_fetch_are_bounded(site: WebPages) -> None:
    async with Guard(allow_private=True, max_bytes=50_000) as guard:
        with pytest.raises(OpenDevError, match="more than 50,000 bytes"):
            await PlainEngine(guard).fetch(f"{site.url}/big", 5)
        assert guard.full


@pytest.mark.req("WEB-01")
async def test_a_redirect_to_a_private_host_is_refused(
    site: WebPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """127.0.0.1 plays the public server here; it sends the visitor on to 127.0.0.2, which stays private."""
    monkeypatch.setattr(addresses, "is_public", "127.0.0.1".__eq__)
    port = site.url.rpartition(":")[2]
    async with Guard() as guard:
        engine = PlainEngine(guard)
        assert (await engine.fetch(f"{site.url}/redirect?to=/a", 5)).url == f"{site.url}/a"
        with pytest.raises(OpenDevError, match=r"127\.0\.0\.2 is a private address"):
            await engine.fetch(f"{site.url}/redirect?to=http://127.0.0.2:{port}/a", 5)
        with pytest.raises(OpenDevError, match="cannot be fetched"):
            await engine.fetch(f"{site.url}/redirect?to=file:///etc/passwd", 5)
