"""find_symbol and rename_symbol with a real language server on a small package (SYM-01 to SYM-08, T-19)."""

import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.core.tool import ToolContext
from opendev.tools import find_symbol, rename_symbol
from opendev.tools.lsp.symbols import MAX_SERVERS, LspSymbols, matches
from opendev.tools.shell.reap import family
from support.tool_context import FakeSymbols, make_context

together = pytest.mark.xdist_group("symbols")  # in one process, so that there is one server
one_loop = pytest.mark.asyncio(loop_scope="module")
FILES = {
    "pkg/__init__.py": "from .net import HttpClient\n\n__all__ = ['HttpClient', 'other']\nother = 1\n",
    "pkg/net.py": (
        '"""HttpClient talks HTTP."""\n\n\nclass HttpClient:\n    """An HttpClient."""\n\n    def get(self) -> str:\n'
        '        return "HttpClient"  # HttpClient\n\n\nclass HttpError(Exception):\n    def get(self) -> None: ...\n\n\n'
        "def make() -> HttpClient:\n    return HttpClient()\n"
    ),
    "tests/test_net.py": (
        "import pkg.net as n\nfrom pkg import HttpClient as C, HttpClient\n\n\ndef test_it():\n"
        "    s = '𝒳𝒳é'; c = HttpClient()\n    assert n.HttpClient().get() == C().get() == c.get()\n"
        "    assert getattr(n, 'HttpClient')\n"
    ),
    "app.py": "\ufefffrom pkg.net import HttpClient; HttpClient().get()\r\nx = HttpClient\r\n",
    "README.md": "Use HttpClient.\n",
}


def mark(place: Path) -> dict[str, str]:
    """What the processes of a place carry; two runs of the tests do not meet."""
    return {"OPENDEV_RUN": f"test-symbols-{os.getpid()}-{place.name}"}


@asynccontextmanager
async def project(place: Path) -> AsyncGenerator[ToolContext]:
    """The files, and a server for them that is gone afterwards."""
    root = place / "project"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
    symbols = LspSymbols(env=env, cache_dir=place / "cache", path="", marker=mark(place))
    yield make_context(root, symbols=symbols)
    await symbols.close()
    assert family(marker=mark(place)) == ()


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[ToolContext]:
    async with project(tmp_path) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolContext]:
    """One server for all tests that leave the files as they are."""
    async with project(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture
def shared(server: ToolContext) -> ToolContext:
    """It, with nothing seen and every path allowed."""
    return make_context(server.root, symbols=server.symbols)


def contents(ctx: ToolContext) -> dict[str, str]:
    return {path: (ctx.root / path).read_bytes().decode() for path in FILES}


def rename(symbol: str, path: str, new: str) -> rename_symbol.Args:
    return rename_symbol.Args(symbol_name=symbol, file_path=path, new_name=new)


@pytest.mark.slow
@pytest.mark.req("SYM-02")
@pytest.mark.req("SYM-06")
@together
@one_loop
async def test_find_by_name_path(shared: ToolContext) -> None:
    async def names(name: str, path: str = "") -> list[str]:
        result = await find_symbol.run(find_symbol.Args(symbol_name=name, file_path=path), shared)
        return [
            f"{m['name_path']} {m['path']}:{m['line']}" for m in (result.data or {"matches": []})["matches"]
        ]

    assert await names("HttpClient") == ["HttpClient pkg/net.py:4"]
    assert await names("get") == ["HttpClient.get pkg/net.py:7", "HttpError.get pkg/net.py:12"]
    assert await names("HttpClient.get") == ["HttpClient.get pkg/net.py:7"]
    assert await names("Http*", "pkg/net.py") == ["HttpClient pkg/net.py:4", "HttpError pkg/net.py:11"]
    assert await names("Http*.get") == ["HttpClient.get pkg/net.py:7", "HttpError.get pkg/net.py:12"]
    assert await names("Absent") == []
    result = await find_symbol.run(find_symbol.Args(symbol_name="HttpError"), shared)
    assert result.data == {
        "matches": [
            {
                "name": "HttpError",
                "name_path": "HttpError",
                "kind": "class",
                "path": "pkg/net.py",
                "line": 11,
                "column": 7,
                "body": "class HttpError(Exception):\n    def get(self) -> None: ...",
            }
        ],
        "total": 1,
    }


@pytest.mark.slow
@pytest.mark.req("SYM-08")
async def test_rename_changes_every_reference_and_no_string(ctx: ToolContext) -> None:
    result = await rename_symbol.run(rename("HttpClient", "pkg/net.py", "ApiClient"), ctx)
    assert result.ok, result.text
    now = contents(ctx)
    assert now["pkg/__init__.py"] == FILES["pkg/__init__.py"].replace(
        "HttpClient", "ApiClient"
    )  # __all__ too
    assert now["app.py"] == FILES["app.py"].replace("HttpClient", "ApiClient")  # the mark and \r\n are kept
    assert now["tests/test_net.py"] == FILES["tests/test_net.py"].replace("HttpClient", "ApiClient").replace(
        "'ApiClient'", "'HttpClient'"
    )
    assert "class ApiClient:" in now["pkg/net.py"]
    assert "def make() -> ApiClient:\n    return ApiClient()" in now["pkg/net.py"]
    assert 'return "HttpClient"  # HttpClient' in now["pkg/net.py"]
    assert set(result.changed) == {"pkg/__init__.py", "pkg/net.py", "tests/test_net.py", "app.py"}
    assert result.data is not None
    assert result.data["edits"] == 12
    assert not any(item["code"] for item in result.data["remaining"])
    left = [(item["path"], item["line"]) for item in result.data["remaining"]]
    assert left == [
        ("README.md", 1),
        ("pkg/net.py", 1),
        ("pkg/net.py", 5),
        ("pkg/net.py", 8),
        ("tests/test_net.py", 8),
    ]

    (ctx.root / "late.py").write_text(
        "from pkg import ApiClient\nApiClient().get()\n"
    )  # the server learns of it
    again = await rename_symbol.run(rename("ApiClient.get", "pkg/net.py", "fetch"), ctx)
    assert again.ok, again.text
    assert (ctx.root / "late.py").read_text() == "from pkg import ApiClient\nApiClient().fetch()\n"
    assert "class HttpError(Exception):\n    def get" in contents(ctx)["pkg/net.py"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "scope", "kind", "words"),
    [
        (
            rename("HttpClient", "pkg/net.py", "ApiClient"),
            Scope(may=("pkg/**",)),
            ErrorKind.SCOPE,
            "app.py, tests/",
        ),
        (
            rename("HttpClient", "pkg/net.py", "ApiClient"),
            Scope(avoid=("tests/**",)),
            ErrorKind.SCOPE,
            "tests/test_",
        ),
        (rename("get", "pkg/net.py", "fetch"), Scope(), ErrorKind.TOOL, "not unique"),
        (rename("HttpClient", "pkg/net.py", "HttpError"), Scope(), ErrorKind.TOOL, "already defines"),
        (rename("HttpClient", "app.py", "ApiClient"), Scope(), ErrorKind.NOT_FOUND, "not defined in app.py"),
        (rename("x", "../app.py", "y"), Scope(), ErrorKind.SCOPE, "outside"),
        (rename("x", "README.txt", "y"), Scope(), ErrorKind.NOT_FOUND, "no language server for README.txt"),
    ],
)
@together
@one_loop
async def test_a_rename_that_may_not_be_changes_nothing(
    shared: ToolContext, args: rename_symbol.Args, scope: Scope, kind: ErrorKind, words: str
) -> None:
    scoped = make_context(shared.root, symbols=shared.symbols, scope=scope)
    with pytest.raises(OpenDevError) as caught:
        await rename_symbol.run(args, scoped)
    assert caught.value.info.kind is kind
    assert words in str(caught.value)
    assert contents(shared) == FILES


@pytest.mark.parametrize("new", ["1st", "a-b", "class", "a b", "a.b"])
async def test_a_new_name_is_an_identifier(tmp_path: Path, new: str) -> None:
    result = await rename_symbol.run(rename("a", "a.py", new), make_context(tmp_path, symbols=FakeSymbols()))
    assert not result.ok
    assert "not a valid identifier" in result.text


@pytest.mark.slow
@together
@one_loop
async def test_a_file_that_changed_since_it_was_read_stops_the_rename(shared: ToolContext) -> None:
    shared.seen.record(shared.root / "app.py", b"what the agent saw")
    with pytest.raises(OpenDevError) as caught:
        await rename_symbol.run(rename("HttpClient", "pkg/net.py", "ApiClient"), shared)
    assert caught.value.info.kind is ErrorKind.CONFLICT
    assert contents(shared) == FILES


@pytest.mark.slow
@together
@one_loop
async def test_a_write_that_fails_takes_the_others_back(shared: ToolContext) -> None:
    target = shared.root / "tests" / "test_net.py"
    target.chmod(0o444)
    try:
        with pytest.raises(OpenDevError, match="read-only"):
            await rename_symbol.run(rename("HttpClient", "pkg/net.py", "ApiClient"), shared)
    finally:
        target.chmod(0o644)
    assert contents(shared) == FILES


@pytest.mark.soak
@pytest.mark.req("SYM-03")
async def test_a_crashed_server_is_started_anew_and_servers_are_bounded(
    ctx: ToolContext, tmp_path: Path
) -> None:
    symbols = ctx.symbols
    assert isinstance(symbols, LspSymbols)
    (place,) = await symbols.find(ctx.root, "make", None)
    for one in family(marker=mark(tmp_path)):
        os.kill(one.pid, signal.SIGKILL)
    # the answer about known content needs no server; one about references does, and gets it without a word
    assert await symbols.find(ctx.root, "make", None) == (place,)
    assert len(await symbols.references(ctx.root, place, include_declaration=True)) == 1
    for number in range(MAX_SERVERS):
        (tmp_path / f"r{number}").mkdir()
        (tmp_path / f"r{number}" / "a.py").write_text(f"def make():\n    return {number}\n")
        await symbols.find(tmp_path / f"r{number}", "make", None)
    assert len({one.session for one in family(marker=mark(tmp_path))}) == MAX_SERVERS


async def test_a_missing_server_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(OpenDevError) as caught:
        await LspSymbols(env={}, cache_dir=tmp_path, path="").find(tmp_path, "x", None)
    assert caught.value.info.kind is ErrorKind.NOT_FOUND
    assert "pyright-langserver or basedpyright-langserver" in str(caught.value)
    assert "pip install" in caught.value.info.hint


@pytest.mark.req("SYM-02")
@pytest.mark.parametrize(
    ("name_path", "wanted", "expected"),
    [
        ("A.b", "A.b", True),
        ("A.b", "b", True),
        ("A.b", "A", False),
        ("A.b", "B.b", False),
        ("Other.A.b", "A.b", True),
        ("xA.b", "A.b", False),
        ("MyThing", "My*", True),
        ("A.MyThing", "My*", True),
        ("b", "A.b", False),
        ("a+b", "a*", False),
    ],
)
def test_name_paths(name_path: str, wanted: str, expected: bool) -> None:
    assert matches(name_path, wanted) is expected
