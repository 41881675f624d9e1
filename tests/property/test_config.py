"""Properties of the settings: whatever layers say, the highest one wins, and no key comes through."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.configs.environment import Environment
from opendev.configs.load import load_config
from opendev.configs.settings_file import without_secrets

KEYS = {
    "temperature": st.floats(0, 2, allow_nan=False),
    "max_tokens": st.integers(1, 10**6),
    "agents.max_depth": st.integers(0, 8),
    "retry.max_tries": st.integers(1, 20),
    "model": st.sampled_from(["a/b", "c/d", "e/f"]),
}
LAYER = st.fixed_dictionaries({}, optional=KEYS)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, leaf = key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[leaf] = value
    return tree


@pytest.mark.req("CFG-02")
@given(LAYER, LAYER, LAYER, LAYER)
def test_the_highest_layer_that_speaks_wins(
    env: dict[str, Any], user: dict[str, Any], own: dict[str, Any], cli: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        home, project = Path(name) / "home", Path(name) / "project"
        for path, content in ((home / "settings.json", user), (project / ".opendev" / "settings.json", own)):
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(nested(content)))
        variables = {f"OPENDEV_{k.replace('.', '__').upper()}": json.dumps(v) for k, v in env.items()}
        environment = Environment({"OPENDEV_HOME": str(home), **variables})
        loaded = load_config(project=project, environment=environment, cli=cli)
        plain = load_config(project=Path(name), environment=Environment({"OPENDEV_HOME": name}))
    for key in KEYS:
        wanted = next(
            (layer[key] for layer in (cli, own, user, env) if key in layer), plain.origins[key][-1].value
        )
        found: Any = loaded.config
        for part in key.split("."):
            found = getattr(found, part)
        assert found == wanted
        assert loaded.origins[key][-1].value == wanted
        assert len(loaded.origins[key]) == 1 + sum(key in layer for layer in (env, user, own, cli))


NAMES = st.sampled_from(["model", "api_key", "agents", "SECRET", "my_token", "x"])
TREES = st.recursive(
    st.sampled_from(["THE-KEY", 1, None]), lambda inner: st.dictionaries(NAMES, inner), max_leaves=12
)


@pytest.mark.req("CFG-04")
@given(st.dictionaries(NAMES, TREES))
def test_no_key_survives_at_any_depth(settings: dict[str, Any]) -> None:
    kept, removed = without_secrets(settings)
    text = json.dumps(kept)
    assert not any(f'"{name}"' in text for name in ("api_key", "SECRET", "my_token"))
    assert without_secrets(kept) == (kept, ())
    assert bool(removed) == (kept != settings)
