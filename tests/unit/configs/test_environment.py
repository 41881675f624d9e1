"""What children and the model service see of the environment (CFG-04, ACT-14)."""

from pathlib import Path

import pytest
from opendev.configs.environment import Environment

SECRETS = (
    "OPENAI_API_KEY",
    "openai_apikey",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "GITHUB_TOKEN",
    "HF_TOKEN",
    "PGPASSWORD",
    "MYSQL_PWD",
    "GH_PAT",
    "NPM_AUTH",
    "SIGNING_KEY",
    "KEY_PASSPHRASE",
    "DB_PASSWD",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "SSH_PRIVATE_KEY",
)
OURS = (
    "OPENDEV_HOME",
    "OPENDEV_RUN",
    "RAY_ADDRESS",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_CONFIG_COUNT",
    "LITELLM_LOG",
)
PLAIN = ("PATH", "HOME", "LANG", "PWD", "TERM", "VIRTUAL_ENV", "KEYBOARD", "MAKEFLAGS", "AUTHOR")
PROVIDER = ("OPENAI_BASE_URL", "AZURE_API_BASE", "AWS_REGION", "VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT")


@pytest.fixture
def environment() -> Environment:
    return Environment({name: f"value of {name}" for name in (*SECRETS, *OURS, *PLAIN, *PROVIDER)})


@pytest.mark.req("CFG-04", "ACT-14")
def test_commands_of_agents_see_no_secret_and_nothing_of_git_ray_or_ours(environment: Environment) -> None:
    assert set(environment.child_env()) == {*PLAIN, *PROVIDER}


@pytest.mark.req("CFG-04")
def test_the_model_service_gets_keys_and_addresses_only(environment: Environment) -> None:
    given = environment.provider_env()
    assert {*SECRETS, *PROVIDER} <= set(given)
    assert not set(given) & {*OURS, *PLAIN}


def test_it_is_a_snapshot() -> None:
    values = {"A": "1"}
    environment = Environment(values)
    values["A"] = "2"
    environment.child_env()["A"] = "3"
    assert (environment.get("A"), environment.items()) == ("1", (("A", "1"),))


@pytest.mark.req("CFG-07")
def test_the_state_root() -> None:
    assert Environment({"OPENDEV_HOME": "/x/y", "HOME": "/home/a"}).home == Path("/x/y")
    assert Environment({"OPENDEV_HOME": "", "HOME": "/home/a"}).home == Path("/home/a/.opendev")
    assert Environment({"OPENDEV_HOME": "rel"}).home == Path.cwd() / "rel"
