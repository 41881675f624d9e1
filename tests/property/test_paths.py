"""Random trees of links: what ``confine`` lets through always lies inside, and never in git's own files (FIL-15)."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.policy.paths import confine, is_git_name, relative

NAMES = st.sampled_from(["a", "b", "c", "..", ".", ".git", ".GIT", "l1", "l2", "x.py"])
SPELLED = st.lists(NAMES, min_size=1, max_size=7).map("/".join)
TARGETS = st.one_of(
    SPELLED,
    SPELLED.map(lambda path: f"/{path}"),
    st.sampled_from(["/", "/etc", "OUT", "OUT/secret", "ROOT", "ROOT/a"]),
)
PLACES = st.sampled_from(["l1", "l2", "a/l1", "a/l2", "a/b/l1", "a/b/l2"])


def _passed(path: str, root: Path) -> Path | None:
    try:
        return confine(path, root)
    except OpenDevError as error:
        if error.info.kind is not ErrorKind.SCOPE:
            raise
        return None


@pytest.mark.req("FIL-15")
@settings(max_examples=150, deadline=None)
@given(
    links=st.dictionaries(PLACES, TARGETS, max_size=5),
    path=st.one_of(SPELLED, SPELLED.map(lambda p: f"ROOT/{p}"), st.text(max_size=12)),
)
def test_what_passes_is_inside(links: dict[str, str], path: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        base = Path(top).resolve()
        root, out = base / "root", base / "out"
        (root / "a/b").mkdir(parents=True)
        out.mkdir()
        (out / "secret").write_text("s")
        place = {"ROOT": str(root), "OUT": str(out)}
        for where, target in links.items():
            for word, real in place.items():
                target = target.replace(word, real)
            (root / where).symlink_to(target)
        asked = path.replace("ROOT", str(root))
        found = _passed(asked, root)
        if found is None:
            return
        # Judged by the operating system, not by us: opening the path and its real place must agree.
        real = Path(os.path.realpath(os.path.join(root, asked)))  # noqa: PTH118
        assert found == real
        assert real == root or root in real.parents
        assert not any(is_git_name(part) for part in real.relative_to(root).parts)
        assert not Path(relative(found, root)).is_absolute()


@given(st.text(max_size=8))
def test_git_names_in_any_case(tail: str) -> None:
    assert is_git_name(".GiT")
    assert is_git_name(".git" + "." * len(tail))
    assert not is_git_name(f".gitx{tail}".replace(":", ""))
