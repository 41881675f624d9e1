"""The demo: a small Python repository and a file of recipe tickets, the same commit everywhere, run without any model."""

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..worktrees.git import Git

_DATE = "2024-01-01T00:00:00Z"
_WHO = {
    "GIT_AUTHOR_NAME": "Demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_COMMITTER_NAME": "Demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
    "GIT_AUTHOR_DATE": _DATE,
    "GIT_COMMITTER_DATE": _DATE,
}

_FILES = {
    ".gitignore": "__pycache__/\n*.pyc\n",
    "shop/__init__.py": '"""A small shop."""\n',
    "shop/client.py": '''"""Talks to the warehouse."""


class HttpClient:
    """Answers from a table in place of a network."""

    def __init__(self, answers: dict[str, int]) -> None:
        self.answers = answers

    def get(self, path: str) -> int:
        return self.answers[path]
''',
    "shop/orders.py": '''"""Orders."""

from .client import HttpClient


def total(client: HttpClient, paths: list[str]) -> int:
    return sum(client.get(path) for path in paths)


def offline() -> HttpClient:
    return HttpClient({})
''',
    "shop/stock.py": '''"""What is in stock."""

from .client import HttpClient


def is_empty(client: HttpClient, path: str) -> bool:
    return client.get(path) == 0
''',
    "shop/helpers.py": '''"""Small text functions."""


def title(text: str) -> str:
    return text.strip().capitalize()
''',
    "shop/labels.py": '''"""Labels for the shelves."""

from .helpers import title


def label(name: str, price: int) -> str:
    return f"{title(name)}: {price}"
''',
    "shop/report.py": '''"""Reports."""


def line(name: str | None, count: int | None) -> str:
    if name == None:
        return "nothing"
    if count == None:
        return name
    return f"{count} x {name}"
''',
    "docs/usage.md": "# Usage\n\nMake an HttpClient, then ask it.\n",
    "docs/style.md": "# Style\n\nThe colour of a label is its category. Every colour is listed here.\n",
    "tests/__init__.py": "",
    "tests/test_orders.py": """import unittest

from shop.client import HttpClient
from shop.orders import offline, total


class OrdersTest(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(total(HttpClient({"a": 1, "b": 2}), ["a", "b"]), 3)

    def test_offline(self) -> None:
        self.assertEqual(offline().answers, {})
""",
    "tests/test_stock.py": """import unittest

from shop.client import HttpClient
from shop.stock import is_empty


class StockTest(unittest.TestCase):
    def test_is_empty(self) -> None:
        self.assertTrue(is_empty(HttpClient({"a": 0}), "a"))
""",
    "tests/test_labels.py": """import unittest

from shop.labels import label


class LabelsTest(unittest.TestCase):
    def test_label(self) -> None:
        self.assertEqual(label(" tea ", 3), "Tea: 3")
""",
    "tests/test_report.py": """import unittest

from shop.report import line


class ReportTest(unittest.TestCase):
    def test_line(self) -> None:
        self.assertEqual([line(None, 1), line("tea", None), line("tea", 2)], ["nothing", "tea", "2 x tea"])
""",
}

_TICKETS = """\
# Seven tickets with recipes: no model is called. Change them, then: opendev swarm run FILE --repo REPOSITORY
[swarm]
base = "main"
into = "swarm/demo"
verify = "python3 -m unittest -q"
concurrency = 4

[[task]]
id = "rename-client"
goal = "HttpClient is called ApiClient everywhere in the code."
scope = ["shop/**", "tests/**"]
verify = "python3 -m unittest -q && ! grep -rq HttpClient shop tests --include=*.py"
done = "Tests green, the old name is gone from the code."
recipe = [ { rename_symbol = { symbol = "HttpClient", to = "ApiClient", path = "shop/client.py" } } ]

[[task]]
id = "client-docs"
goal = "The documentation uses the new name of the client."
scope = ["docs/usage.md"]
verify = "grep -q ApiClient docs/usage.md shop/client.py"
done = "docs/usage.md names a class that exists."
depends_on = ["rename-client"]
recipe = [ { replace = { pattern = "HttpClient", with = "ApiClient", glob = "docs/usage.md" } } ]

[[task]]
id = "none-checks"
goal = "None is compared by identity."
scope = ["shop/report.py"]
verify = "python3 -m unittest -q && ! grep -q '== None' shop/report.py"
done = "No `== None` is left in shop/report.py."
recipe = [ { rewrite = { lang = "python", pattern = "$A == None", rewrite = "$A is None", glob = "shop/report.py" } } ]

[[task]]
id = "spelling"
goal = "The style guide is spelled the American way."
scope = ["docs/style.md"]
verify = "! grep -q colour docs/style.md"
done = "The word is spelled color."
recipe = [ { replace = { pattern = "colour", with = "color", glob = "docs/style.md" } } ]

[[task]]
id = "version"
goal = "The package knows its version."
scope = ["shop/__init__.py"]
verify = "python3 -c 'import shop; assert shop.__version__'"
done = "shop.__version__ exists."
recipe = [ { insert = { path = "shop/__init__.py", after = '\"\"\"A small shop.\"\"\"', content = "\\n\\n__version__ = \\"2.0\\"" } } ]

[[task]]
id = "shipping"
goal = "The shop can tell the price of shipping."
scope = ["shop/shipping.py", "tests/test_shipping.py"]
verify = "python3 -m unittest -q tests.test_shipping"
done = "shop/shipping.py exists and is tested."
[[task.recipe]]
write = { path = "shop/shipping.py", content = '''
\"\"\"Shipping.\"\"\"


def price(grams: int) -> int:
    return 5 if grams <= 1000 else 9
''' }
[[task.recipe]]
write = { path = "tests/test_shipping.py", content = '''
import unittest

from shop.shipping import price


class ShippingTest(unittest.TestCase):
    def test_price(self) -> None:
        self.assertEqual([price(1000), price(1001)], [5, 9])
''' }

[[task]]
id = "move-helpers"
goal = "The text functions live in shop/text.py."
scope = ["shop/helpers.py", "shop/text.py", "shop/labels.py"]
verify = "python3 -m unittest -q && test ! -e shop/helpers.py"
done = "shop/helpers.py is gone and its users import shop/text.py."
recipe = [
  { move = { from = "shop/helpers.py", to = "shop/text.py" } },
  { replace = { pattern = "from .helpers import", with = "from .text import", glob = "shop/labels.py" } },
]
"""


@dataclass(frozen=True, slots=True)
class Demo:
    """Where the demo stands."""

    repo: Path
    tickets: Path


def make_demo(folder: Path) -> Demo:
    """Make ``folder/shop`` (a repository) and ``folder/tickets.toml``. Raises ``OpenDevError`` (usage) when they exist."""
    folder = folder.absolute()
    demo = Demo(folder / "shop", folder / "tickets.toml")
    for path in (demo.repo, demo.tickets):
        if path.exists():
            raise OpenDevError(
                ErrorKind.USAGE,
                f"{path} exists already; nothing was changed.",
                "Name a new folder for the demo.",
            )
    for name, content in _FILES.items():
        path = demo.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    demo.tickets.write_text(_TICKETS, encoding="utf-8")
    git = Git(demo.repo, {})
    git.run("init", "--quiet", "--initial-branch=main")
    git.run("add", "--all")
    git.run("commit", "--quiet", "-m", "A small shop", env=_WHO)
    return demo
