"""Logins to MCP servers: one person once, then renewed quietly; without a person it ends at once and says what to do (X12)."""

import asyncio
import json
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opendev.cli.mcp_login import log_in
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.link import LinkState
from opendev.tools.mcp.logins import LoginStore
from opendev.tools.mcp.loopback import loopback
from opendev.tools.mcp.manager import McpManager
from support.oauth_server import Desk, locked_server
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.req("MCP-10")]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with locked_server(Desk()) as served:
        yield served


def entry(desk: Desk, home: Path, **more: Any) -> McpServer:
    return McpServer.model_validate(
        {
            "name": "far",
            "transport": "http",
            "url": f"{desk.url}/mcp",
            "home": str(home),
            "timeout": 10_000,
            **more,
        }
    )


async def agrees(url: str) -> None:
    """The person's browser."""
    await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).close())


class Used:
    """Calls of one run without a person."""

    def __init__(self, server: McpServer) -> None:
        self.said: list[str] = []
        self.manager = McpManager([server], {}, self.said.append)

    async def __aenter__(self) -> "Used":
        self.manager.start()
        await self.manager.settled(10)
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.manager.close()

    async def call(self) -> str:
        return (await self.manager.link("far").call("who", {})).text

    @property
    def state(self) -> LinkState:
        return self.manager.status()[0].state


async def test_a_person_logs_in_once_and_later_runs_use_it(desk: Desk, tmp_path: Path) -> None:
    server = entry(desk, tmp_path)
    assert await log_in(server, {}, agrees) == "Logged in to far: 1 tools."
    async with Used(server) as used:
        assert await used.call() == "you"
    assert await log_in(server, {}, agrees) == "far let us in without a new login: 1 tools."
    assert (desk.registered, len(desk.authorized), len(desk.granted)) == (1, 1, 1)
    assert desk.authorized[0]["redirect_uri"].startswith("http://127.0.0.1:")
    assert desk.authorized[0]["resource"] == server.url
    file = LoginStore(tmp_path, server.url).path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert LoginStore(tmp_path, server.url + "/other").load() == {}  # another address never gets it


@pytest.mark.parametrize("known", [True, False], ids=["it knows when", "the server says so"])
async def test_a_token_that_is_over_is_renewed_once_for_all_who_wait(
    desk: Desk, tmp_path: Path, *, known: bool
) -> None:
    server = entry(desk, tmp_path)
    await log_in(server, {}, agrees)
    desk.valid = {}
    if known:
        LoginStore(tmp_path, server.url).save(expires_at=1.0)
    async with Used(server) as used:
        assert await asyncio.gather(*(used.call() for _ in range(5))) == ["you"] * 5
    assert [asked["grant_type"] for asked in desk.granted][1:] == ["refresh_token"]
    assert (desk.registered, len(desk.authorized)) == (1, 1)
    assert (desk.bad_tokens == 0) is known  # one that is known to be over is not even sent
    async with Used(server) as used:  # what came of it was kept
        assert await used.call() == "you"
    assert len(desk.granted) == 2


async def test_what_another_process_has_renewed_is_taken_over(desk: Desk, tmp_path: Path) -> None:
    server = entry(desk, tmp_path)
    await log_in(server, {}, agrees)
    async with Used(server) as used:
        assert await used.call() == "you"
        LoginStore(tmp_path, server.url).save(tokens=None)
        await log_in(server, {}, agrees)  # the first token is over with it
        assert await used.call() == "you"
    assert [asked["grant_type"] for asked in desk.granted] == ["authorization_code"] * 2


async def test_without_a_person_a_login_that_is_over_fails_fast_and_says_so(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk.good_for, desk.renews = 2, False
    server = entry(desk, tmp_path)
    await log_in(server, {}, agrees)
    async with Used(server) as used:
        assert [await used.call(), await used.call()] == ["you", "you"]
        async with asyncio.timeout(5):
            with pytest.raises(OpenDevError) as over:
                await used.call()
        await until(lambda: used.state is LinkState.NEEDS_LOGIN)
        assert over.value.info.kind is ErrorKind.DENIED
        assert "opendev mcp login far" in over.value.info.hint
        with pytest.raises(OpenDevError):
            await used.call()
        assert [asked["grant_type"] for asked in desk.granted][1:] == ["refresh_token"]
        assert (desk.registered, len(desk.authorized)) == (1, 1)
        assert any("needs login" in text for text in used.said)
        assert "secret" not in f"{used.said} {over.value} {caplog.text}"


async def test_without_any_login_nothing_is_registered(desk: Desk, tmp_path: Path) -> None:
    async with Used(entry(desk, tmp_path)) as used:
        assert used.state is LinkState.NEEDS_LOGIN
    assert (desk.registered, desk.authorized, desk.granted) == (0, [], [])


async def test_a_call_that_needs_more_rights_names_the_login_which_asks_for_all_of_them(
    desk: Desk, tmp_path: Path
) -> None:
    server = entry(desk, tmp_path)
    await log_in(server, {}, agrees)
    desk.scope = "files:write files:read"
    async with Used(server) as used:
        with pytest.raises(OpenDevError, match="more rights"):
            await used.call()
    await log_in(server, {}, agrees)
    assert desk.authorized[-1]["scope"] == "files:read files:write"
    async with Used(server) as used:
        assert await used.call() == "you"


async def test_a_server_that_takes_no_token_does_not_ask_for_ever(desk: Desk, tmp_path: Path) -> None:
    desk.forgets = True
    with pytest.raises(OpenDevError):
        await log_in(entry(desk, tmp_path), {}, agrees)
    assert len(desk.authorized) <= 2


async def test_an_answer_of_another_issuer_is_refused(desk: Desk, tmp_path: Path) -> None:
    desk.wrong_issuer = True
    with pytest.raises(OpenDevError):
        await log_in(entry(desk, tmp_path), {}, agrees)
    assert desk.granted == []


async def test_a_program_logs_in_with_its_own_secret(desk: Desk, tmp_path: Path) -> None:
    oauth = {
        "grant": "client_credentials",
        "client_id": "me",
        "client_secret": "s3",
        "issuer": f"{desk.url}/login",
    }
    async with Used(entry(desk, tmp_path, oauth=oauth)) as used:
        assert await used.call() == "you"
        desk.valid = {}
        assert await used.call() == "you"
    assert [asked["grant_type"] for asked in desk.granted] == ["client_credentials"] * 2
    assert desk.granted[0]["authorization"].startswith("Basic ")
    elsewhere = {**oauth, "issuer": "https://other.example"}
    async with Used(entry(desk, tmp_path / "2", oauth=elsewhere)) as used:
        assert used.state is not LinkState.READY
    assert len(desk.granted) == 2  # the secret goes to nobody else


async def test_a_token_in_the_headers_is_used_as_it_is(desk: Desk, tmp_path: Path) -> None:
    await log_in(entry(desk, tmp_path), {}, agrees)
    before = (desk.registered, len(desk.granted))
    async with Used(entry(desk, tmp_path, headers={"authorization": "Bearer mine"})) as used:
        assert used.state is LinkState.NEEDS_LOGIN
    assert desk.bad_tokens > 0
    assert (desk.registered, len(desk.granted)) == before


async def test_the_way_back_takes_only_the_answer_to_this_login() -> None:
    codes: list[int] = []

    def get(url: str) -> None:
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                codes.append(page.status)
        except urllib.error.HTTPError as error:
            codes.append(error.code)

    async def bring(url: str) -> None:
        back = url.partition("?to=")[2].partition("&")[0]
        for query in ("code=x&state=wrong", "code=x", "code=x&state=st4te", "code=late&state=st4te"):
            await asyncio.to_thread(get, f"{back}?{query}")

    async with loopback(0, bring) as login:
        await login.show(f"https://as.example/ask?to={login.redirect_uri}&state=st4te")
        assert await login.wait() == {"code": "x", "state": "st4te"}
    assert codes == [404, 404, 200, 200]
    async with loopback(0, agrees) as login:
        with pytest.raises(OpenDevError):
            await login.show("file:///etc/passwd?state=a")

    async def looks(_url: str) -> None:
        """A person who only looks."""

    async with loopback(0, looks) as login:
        for _ in range(2):
            await login.show("https://as.example/ask?state=a")
        with pytest.raises(OpenDevError, match="asks for another"):
            await login.show("https://as.example/ask?state=a")

    async def declines(url: str) -> None:
        await asyncio.to_thread(get, f"{login.redirect_uri}?error=access_denied&state=a")

    async with loopback(0, declines) as login:
        await login.show("https://as.example/ask?state=a")
        with pytest.raises(OpenDevError, match="access_denied"):
            await login.wait()


def test_a_file_that_cannot_be_read_is_no_login(tmp_path: Path) -> None:
    store = LoginStore(tmp_path, "https://a.example")
    store.save(tokens={"access_token": "x"})
    assert store.load()["tokens"] == {"access_token": "x"}
    store.path.write_text("{")
    assert store.load() == {}
    store.path.write_text(json.dumps({"url": "https://b.example", "tokens": {}}))
    assert store.load() == {}
    assert (store.forget(), store.forget()) == (True, False)
