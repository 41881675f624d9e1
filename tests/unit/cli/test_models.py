"""`opendev models` and the catalogue behind it: when it is fetched, when it is not (MOD-04 to MOD-06, C-19, C-20)."""

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from opendev.cli import catalogue
from opendev.cli.catalogue import keep_current, open_catalog
from opendev.cli.project import open_project
from opendev.cli.wiring import agent_settings
from opendev.configs.load import load_config, read_environment
from opendev.core.chat import Role
from support.catalogue_server import CatalogueServer
from support.repos import make_repo

from .conftest import CommandLine

UNKNOWN = "acme/big"  # nothing on this machine knows it


@pytest.fixture
def server(cli: CommandLine) -> Generator[CatalogueServer]:
    with CatalogueServer() as running:
        cli.patch.delenv("OPENDEV_DISABLE_REMOTE_MODELS")
        cli.patch.setenv("OPENDEV_CATALOG__URL", running.url)
        yield running


def window_of(model: str) -> int | None:
    return open_catalog(open_project(None)).info(model).window


@pytest.mark.req("MOD-04", "MOD-05")
def test_refresh_fetches_and_show_and_list_tell_it(cli: CommandLine, server: CatalogueServer) -> None:
    done = cli("models", "refresh")
    assert done.code == 0
    assert done.out.startswith("3 models of 2 providers")
    assert (cli.home / "cache" / "acme.json").is_file()
    shown = cli("models", "show", UNKNOWN).json()
    assert (shown["window"], shown["vision"], shown["reasoning"], shown["price"]["output"]) == (
        500_000,
        True,
        True,
        2,
    )
    cli.settings({"model": UNKNOWN})
    lines = dict(line.split(maxsplit=1) for line in cli("models", "list").out.splitlines())
    assert lines["vision"] == UNKNOWN  # the catalogue says that it sees
    assert lines["catalogue"].startswith(server.url)
    assert lines["catalogue"].endswith("fetched 0 h ago")
    assert server.asked == 1  # it is fresh: nothing was asked again


@pytest.mark.req("MOD-05")
def test_show_fetches_by_itself_and_survives_a_dead_address(
    cli: CommandLine, server: CatalogueServer
) -> None:
    assert cli("models", "show", UNKNOWN).json()["window"] == 500_000
    server.body = None
    failed = cli("models", "refresh")
    assert failed.code == 6
    assert server.url in failed.err
    assert cli("models", "show", UNKNOWN).json()["window"] == 500_000


@pytest.mark.req("MOD-05")
def test_a_start_without_any_cache_waits_for_it_but_not_long(
    cli: CommandLine, server: CatalogueServer
) -> None:
    project = open_project(None)
    assert keep_current(project, [UNKNOWN]) is not None
    assert window_of(UNKNOWN) == 500_000
    for path in (cli.home / "cache").iterdir():
        path.unlink()
    cli.patch.setattr(catalogue, "BLOCK_S", 0.05)
    server.gate.clear()
    slow = keep_current(project, [UNKNOWN])
    assert slow is not None
    assert slow.is_alive()
    assert window_of(UNKNOWN) is None  # work starts anyway
    server.gate.set()
    slow.join(10)
    assert window_of(UNKNOWN) == 500_000


@pytest.mark.req("MOD-05")
def test_stale_data_is_served_while_it_is_renewed(cli: CommandLine, server: CatalogueServer) -> None:
    assert cli("models", "refresh").code == 0
    os.utime(cli.home / "cache" / ".last_sync", (1, 1))
    server.body = json.dumps({"acme": {"models": {"big": {"limit": {"context": 600_000}}}}}).encode()
    server.gate.clear()
    cli.patch.setattr(catalogue, "BLOCK_S", 60)  # only a start without any cache waits
    renewing = keep_current(open_project(None), [UNKNOWN])
    assert renewing is not None
    assert window_of(UNKNOWN) == 500_000
    server.gate.set()
    renewing.join(10)
    assert window_of(UNKNOWN) == 600_000
    assert keep_current(open_project(None), [UNKNOWN]) is None  # fresh again


@pytest.mark.req("MOD-06")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENDEV_DISABLE_REMOTE_MODELS", "1"),
        ("OPENDEV_MODELS_DEV_PATH", "/dev/null"),
        ("OPENDEV_CATALOG__URL", ""),
        ("ACME_API_BASE", "http://127.0.0.1:9"),  # a server of the user's own
    ],
)
def test_nothing_is_asked_of_the_network(
    cli: CommandLine, server: CatalogueServer, variable: str, value: str
) -> None:
    if variable == "OPENDEV_CATALOG__URL":
        cli.settings({"catalog.url": ""})
    cli.patch.setenv(variable, value)
    assert keep_current(open_project(None), [UNKNOWN]) is None
    assert server.asked == 0
    if variable != "ACME_API_BASE":
        assert cli("models", "refresh").code == 2
        assert server.asked == 0


def test_a_known_model_and_no_model_ask_nothing(cli: CommandLine, server: CatalogueServer) -> None:
    assert keep_current(open_project(None), ["openai/gpt-5", "offline/recipes"]) is None
    assert cli("models", "list").code == 0  # none is configured
    assert server.asked == 0


def test_a_project_cannot_move_the_address(cli: CommandLine) -> None:
    cli.settings({"catalog": {"url": "http://127.0.0.1:9/evil"}}, project=True)
    loaded = load_config(project=cli.project, environment=read_environment())
    assert "evil" not in loaded.config.catalog.url
    assert any("catalog.url" in warning for warning in loaded.warnings)


@pytest.mark.req("CFG-06")
@pytest.mark.parametrize(("bound", "window"), [(None, 500_000), (100_000, 100_000), (900_000, 500_000)])
def test_the_window_comes_from_the_catalogue_and_a_setting_only_lowers_it(
    cli: CommandLine, server: CatalogueServer, bound: int | None, window: int
) -> None:
    cli.settings({"model": UNKNOWN, "max_context_tokens": bound})
    assert cli("models", "refresh").code == 0
    settings = agent_settings(open_project(None), models=["other/small"])
    assert settings.window(UNKNOWN) == window
    assert settings.window("other/small") == 9_000  # named by a ticket, not by a setting
    assert settings.models[Role.ACTION] == UNKNOWN


@pytest.mark.slow
@pytest.mark.usefixtures("litellm_loaded")
def test_a_swarm_of_recipes_never_touches_the_network(cli: CommandLine, server: CatalogueServer) -> None:
    cli.patch.setenv("OPENDEV_MODEL", UNKNOWN)
    recipe = [{"replace": {"pattern": "A = 1", "with": "A = 2", "glob": "a.py"}}]
    tickets = {"swarm": {"into": "swarm/x"}, "task": [{"id": "one", "goal": "Do it.", "recipe": recipe}]}
    (cli.project / "tickets.json").write_text(json.dumps(tickets))
    cli.patch.chdir(make_repo(cli.project / "repo"))
    done = cli("swarm", "run", "../tickets.json", "--runtime", "local", "--output", "json")
    assert done.code == 0, done.err
    assert done.json()["tasks"][0]["status"] == "merged"
    assert server.asked == 0
    assert not Path(cli.home / "cache" / "acme.json").exists()
