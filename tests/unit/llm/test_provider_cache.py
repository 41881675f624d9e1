"""The provider cache: one file a provider, fresh for a day, stale data rather than none, and it mends itself (MOD-04, MOD-05)."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.catalog import Catalog, ModelInfo
from opendev.llm.cost import Price
from opendev.llm.provider_cache import RETRY_S, ProviderCache, Synced, cached_provider
from opendev.store.atomic import write_atomic
from support.catalogue_server import CATALOGUE, CatalogueServer
from support.fixed_clock import FixedClock

DAY = 24 * 3600


@pytest.fixture
def server() -> Generator[CatalogueServer]:
    with CatalogueServer() as running:
        yield running


def cache_of(folder: Path, url: str, clock: FixedClock | None = None) -> ProviderCache:
    return ProviderCache(folder, url, clock or FixedClock(), write_atomic)


def dated(path: Path, at: float) -> None:
    os.utime(path, (at, at))


@contextmanager
def fails(kind: ErrorKind) -> Generator[None]:
    with pytest.raises(OpenDevError) as caught:
        yield
    assert caught.value.info.kind is kind


@pytest.mark.req("MOD-04")
def test_a_fetch_writes_one_file_for_each_provider_and_the_marker(
    tmp_path: Path, server: CatalogueServer
) -> None:
    assert cache_of(tmp_path, server.url).refresh() == Synced(providers=2, models=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".last_sync", "acme.json", "other.json"]
    assert json.loads((tmp_path / "acme.json").read_text()) == CATALOGUE["acme"]
    assert Catalog(cache=tmp_path).info("acme/big") == ModelInfo(
        name="acme/big",
        window=500_000,
        max_output=8_000,
        vision=True,
        reasoning=True,
        price=Price(input=1, output=2, cached=0.5),
    )
    assert Catalog(cache=tmp_path).info("acme/odd") == ModelInfo(name="acme/odd")  # a row of nonsense
    assert Catalog(cache=tmp_path).info("nobody/big").window is None


@pytest.mark.req("MOD-05")
def test_it_is_fresh_for_a_day_by_the_markers_time(tmp_path: Path, server: CatalogueServer) -> None:
    clock = FixedClock()
    cache = cache_of(tmp_path, server.url, clock)
    assert (cache.age_s, cache.fresh, cache.may_fetch) == (None, False, True)
    cache.refresh()
    for age, fresh in ((0, True), (DAY - 1, True), (DAY + 1, False), (-60, False)):
        dated(tmp_path / ".last_sync", clock.now() - age)
        assert (cache.age_s, cache.fresh) == (pytest.approx(age), fresh)


@pytest.mark.req("MOD-05", "ARC-06")
def test_a_failed_fetch_keeps_what_was_there_and_is_not_repeated_for_an_hour(
    tmp_path: Path, server: CatalogueServer
) -> None:
    clock = FixedClock()
    cache = cache_of(tmp_path, server.url, clock)
    cache.refresh()
    for body in (b"{", b"[]", b"{}", b'{"acme": 3}', None):
        server.body = body  # None: an HTTP error
        with fails(ErrorKind.INFRA):
            cache.refresh()
    assert Catalog(cache=tmp_path).info("acme/big").window == 500_000
    dated(tmp_path / ".last_failure", clock.now() - 60)
    assert not cache.may_fetch
    dated(tmp_path / ".last_failure", clock.now() - RETRY_S - 1)
    assert cache.may_fetch
    server.body = server.whole
    cache.refresh()
    assert not (tmp_path / ".last_failure").exists()


@pytest.mark.req("ARC-06")
@pytest.mark.parametrize("torn", [b'{"models": {', b"\xff\xfe", b"[]", b'{"models": 4}'])
def test_a_corrupt_file_is_removed_and_fetched_again(
    tmp_path: Path, server: CatalogueServer, torn: bytes
) -> None:
    cache = cache_of(tmp_path, server.url)
    cache.refresh()
    (tmp_path / "acme.json").write_bytes(torn)
    assert Catalog(cache=tmp_path).info("acme/big") == ModelInfo(name="acme/big")
    assert not (tmp_path / "acme.json").exists()
    assert not cache.fresh
    cache.refresh()
    assert Catalog(cache=tmp_path).info("acme/big").window == 500_000


def test_a_name_never_leaves_the_folder(tmp_path: Path, server: CatalogueServer) -> None:
    server.body = json.dumps(
        {"../evil": {"models": {}}, "a/b": {"models": {}}, "ok": {"models": {}}}
    ).encode()
    cache_of(tmp_path / "c", server.url).refresh()
    assert sorted(p.name for p in tmp_path.rglob("*.json")) == ["ok.json"]
    (tmp_path / "evil.json").write_text('{"models": {}}')
    assert cached_provider(tmp_path / "c", "../evil") == {}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "nonsense"])
def test_only_http_is_fetched(tmp_path: Path, url: str) -> None:
    with fails(ErrorKind.CONFIG):
        cache_of(tmp_path, url).refresh()


@pytest.mark.req("MOD-06")
def test_without_an_address_nothing_is_fetched(tmp_path: Path) -> None:
    assert not cache_of(tmp_path, "").may_fetch


def test_the_users_file_stands_in_for_the_cache(tmp_path: Path, server: CatalogueServer) -> None:
    cache_of(tmp_path / "c", server.url).refresh()
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"acme": {"models": {"big": {"limit": {"context": 7000}}}}}))
    assert Catalog(models_dev=mine, cache=tmp_path / "c").info("acme/big").window == 7000
    assert Catalog(models_dev=mine, cache=tmp_path / "c").info("other/small").window is None
