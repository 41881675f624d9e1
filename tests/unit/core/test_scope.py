"""What a ticket may write: anchored globs, where ``avoid`` always wins (SWM-05, SWM-08)."""

import pytest
from opendev.core.scope import Scope


@pytest.mark.req("SWM-05")
@pytest.mark.parametrize(
    ("may", "avoid", "path", "allowed"),
    [
        ((), (), "anything/at/all", True),
        ((), ("src/legacy/**",), "src/legacy/a.py", False),
        ((), ("src/legacy/**",), "src/new.py", True),
        (("src/**",), (), "src/a/b.py", True),
        (("src/**",), (), "src2/a.py", False),
        (("src/**",), (), "lib/src/a.py", False),
        (("src/**",), ("src/legacy/**",), "src/legacy/a.py", False),
        (("src/legacy/a.py",), ("src/legacy/**",), "src/legacy/a.py", False),
        (("src",), (), "src/a.py", True),
        (("/src/**",), (), "src/a.py", True),
        (("*.py",), (), "a.py", True),
        (("*.py",), (), "deep/a.py", False),
        (("**/*.py",), (), "deep/er/a.py", True),
        (("src/*/a.py",), (), "src/x/a.py", True),
        (("src/*/a.py",), (), "src/x/y/a.py", False),
        (("a[bc].txt",), (), "ab.txt", True),
        (("a[bc].txt",), (), "ad.txt", False),
        (("src/**",), ("**/*.lock",), "src/poetry.lock", False),
        (("with space/**",), (), "with space/a", True),
        (("ünï/**",), (), "ünï/ß", True),
    ],
)
def test_allows(may: tuple[str, ...], avoid: tuple[str, ...], path: str, allowed: bool) -> None:
    assert Scope(may=may, avoid=avoid).allows(path) is allowed


def test_outside_keeps_the_order() -> None:
    scope = Scope(may=("src/**",), avoid=("src/b.py",))
    assert scope.outside(("z.py", "src/a.py", "src/b.py", "a.py")) == ("z.py", "src/b.py", "a.py")


def test_a_scope_survives_json() -> None:
    scope = Scope(may=("src/**",), avoid=("src/b.py",))
    again = Scope.model_validate_json(scope.model_dump_json())
    assert again == scope
    assert not again.allows("src/b.py")
