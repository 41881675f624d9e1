"""Deep crawl over a made-up web: order, caps, domains (WEB-02)."""

from dataclasses import dataclass, field

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools.web.crawl import MAX_CHARS, Crawl, Order, Plan, crawl, in_domains, relevance
from opendev.tools.web.page import Link, Page

H = "https://h.example"
TREE = {
    "/": ("/a", "/turtle", "https://x.example/1", "https://sub.h.example/s"),
    "/a": ("/a1", "/a2", "/"),
    "/turtle": ("/turtle1",),
    "/a1": ("/deep",),
}


@dataclass
class FakeWeb:
    name: str = "fake"
    size: int = 10
    asked: list[str] = field(default_factory=list[str])
    moved: dict[str, str] = field(default_factory=dict[str, str])

    async def fetch(self, url: str, timeout_s: float) -> Page:
        assert timeout_s == 30.0
        self.asked.append(url)
        if url.endswith("/turtle1"):
            raise OpenDevError(ErrorKind.TOOL, "it is gone.")
        final = self.moved.get(url, url)
        names = TREE.get(final.removeprefix(H), ())
        links = tuple(Link(n if n.startswith("http") else H + n, f"word{n}") for n in names)
        return Page(final, 200, final, "x" * self.size, links)


async def go(order: Order, web: FakeWeb | None = None, *, pages: int = 50, depth: int = 5, query: str = "",
             domains: tuple[str, ...] = (), stop: bool = False) -> tuple[list[str], Crawl]:  # fmt: skip
    web = web or FakeWeb()
    found = await crawl(web, f"{H}/", Plan(order, pages, depth, domains, query), lambda: stop)
    return [url.removeprefix(H) for url in web.asked], found


@pytest.mark.req("WEB-02")
async def test_orders() -> None:
    assert (await go(Order.BREADTH))[0] == [
        "/",
        "/a",
        "/turtle",
        "https://sub.h.example/s",
        "/a1",
        "/a2",
        "/turtle1",
        "/deep",
    ]
    assert (await go(Order.DEPTH))[0] == [
        "/",
        "/a",
        "/a1",
        "/deep",
        "/a2",
        "/turtle",
        "/turtle1",
        "https://sub.h.example/s",
    ]
    best, _ = await go(Order.BEST, query="turtle")
    assert best[:3] == ["/", "/turtle", "/turtle1"]


@pytest.mark.req("WEB-02")
async def test_caps_on_pages_depth_and_characters() -> None:
    asked, found = await go(Order.BREADTH, pages=3)
    assert asked == ["/", "/a", "/turtle"]
    assert found.left > 0
    asked, _ = await go(Order.BREADTH, depth=1)
    assert asked == ["/", "/a", "/turtle", "https://sub.h.example/s"]
    asked, _ = await go(Order.BREADTH, FakeWeb(size=MAX_CHARS // 2))
    assert len(asked) == 2
    assert (await go(Order.BREADTH, stop=True))[0] == ["/"]


@pytest.mark.req("WEB-02")
async def test_domains_and_redirects_out_of_them() -> None:
    asked, _ = await go(Order.BREADTH, domains=("X.example",))
    assert "https://x.example/1" in asked
    web = FakeWeb(moved={f"{H}/a": "https://elsewhere.example/a", f"{H}/turtle": f"{H}/"})
    _, found = await go(Order.BREADTH, web)
    assert [page.url for page in found.pages] == [f"{H}/", "https://sub.h.example/s"]
    assert in_domains("a.b.c", ("b.c",))
    assert not in_domains("ab.c", ("b.c",))


async def test_a_page_that_fails_is_told_and_the_first_one_is_an_error() -> None:
    _, found = await go(Order.BREADTH)
    assert found.failed == [(f"{H}/turtle1", "it is gone.")]
    with pytest.raises(OpenDevError, match="gone"):
        await crawl(FakeWeb(), f"{H}/turtle1", Plan(Order.BREADTH, 1, 1), lambda: False)


def test_relevance() -> None:
    assert relevance(Link("https://h/turtles", "All about"), "turtles about") == 1.0
    assert relevance(Link("https://h/x", ""), "turtles") == 0.0
    assert relevance(Link("https://h/x", ""), "") == 0.0
