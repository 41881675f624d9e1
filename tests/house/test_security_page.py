"""docs/security.md: every promise names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs/security.md").read_text().partition("## Promises")[2].partition("## ")[0]
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    assert [row for row in rows if "`test" not in row and "the same" not in row] == []
    known = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    named = re.findall(r"`(?:\S*/)?(test_\w+\.py)`|`(tests/\S+)`", page)
    wanted = {whole or name for name, whole in named}
    missing = [
        name for name in wanted if not any(path == name or path.endswith(f"/{name}") for path in known)
    ]
    assert missing == []
