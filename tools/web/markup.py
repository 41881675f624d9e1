"""HTML as markdown and links: what a reader sees, without scripts, styles and forms."""

import re
from urllib.parse import urldefrag, urljoin

from .page import Link, Page

MAX_HTML = 5_000_000  # characters of HTML that are looked at
MAX_LINKS = 500
_NOISE = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head")
_BLANKS = re.compile(r"\n\s*\n\s*\n+")


def to_page(html: str | bytes, url: str, status: int) -> Page:
    """The page that ``html`` from ``url`` shows; bytes are decoded as the page itself says. Blocking; costs about a second per megabyte."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(html[:MAX_HTML], "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    base = soup.find("base", href=True)
    root = urljoin(url, str(base["href"])) if base else url
    for tag in soup.find_all(_NOISE):
        tag.decompose()
    links: dict[str, Link] = {}
    for anchor in soup.find_all("a", href=True):
        target = _absolute(root, str(anchor["href"]))
        if not target:
            anchor.unwrap()
            continue
        anchor["href"] = target
        if len(links) < MAX_LINKS:
            links.setdefault(target, Link(target, anchor.get_text(" ", strip=True)[:200]))
    for picture in soup.find_all("img", src=re.compile("^data:")):
        picture["src"] = ""
    converter = MarkdownConverter(heading_style="ATX", bullets="-", code_language="")
    try:
        text = converter.convert_soup(soup)
    except RecursionError:  # nested without end: the words alone
        text = soup.get_text("\n", strip=True)
    return Page(url, status, title[:300], _BLANKS.sub("\n\n", text).strip(), tuple(links.values()))


def _absolute(base: str, href: str) -> str:
    """The address of a link; empty when it leads nowhere on the web."""
    try:
        target = urldefrag(urljoin(base, href.strip())).url
    except ValueError:
        return ""
    return target if target.startswith(("http://", "https://")) else ""
