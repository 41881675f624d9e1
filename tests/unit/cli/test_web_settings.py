"""What the settings of web and vision do to agents and to `opendev tools run` (WEB-01, WEB-03, MOD-02)."""

import json
from collections.abc import Iterator

import pytest
from opendev.cli.project import open_project
from opendev.cli.wiring import agent_settings
from opendev.core.tool import WebRules
from support.web_pages import WebPages

from .conftest import CommandLine


@pytest.fixture(scope="module")
def site() -> Iterator[WebPages]:
    with WebPages() as pages:
        yield pages


@pytest.mark.req("WEB-01", "WEB-03", "CFG-01")
def test_agents_get_the_rules_and_the_models_that_see(cli: CommandLine) -> None:
    plain = agent_settings(open_project(None))
    assert plain.web == WebRules(allow_private=False, search_provider="duckduckgo")
    cli.settings({"model": "openai/gpt-4o", "web.allow_private": True, "web.search_provider": "mojeek"})
    settings = agent_settings(open_project(None), models=["openai/gpt-3.5-turbo"])
    assert settings.web == WebRules(allow_private=True, search_provider="mojeek")
    assert settings.seeing == ("openai/gpt-4o",)


@pytest.mark.req("WEB-01")
def test_private_addresses_by_hand(cli: CommandLine, site: WebPages) -> None:
    cli.patch.setenv("PATH", "/usr/bin-without-a-browser")
    args = json.dumps({"url": f"{site.url}/a"})
    refused = cli("tools", "run", "fetch_url", "--args", args)
    assert (refused.code, refused.json()["error"]["kind"]) == (7, "denied")
    cli.settings({"web.allow_private": True})
    done = cli("tools", "run", "fetch_url", "--args", args)
    assert done.code == 0, done.out
    assert "page a" in done.json()["text"]
