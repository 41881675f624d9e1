"""Four layers and the command line, as a table; keys, narrowing, and errors that name file, line and key (CFG-01 to CFG-10)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from opendev.configs.environment import Environment
from opendev.configs.explain import explain
from opendev.configs.load import Loaded, load_config, read_files, resolve
from opendev.configs.schema import AppConfig, Price, Roles, leaf_keys
from opendev.configs.set_value import changed_settings
from opendev.configs.settings_file import read_settings
from opendev.core.approval import ApprovalLevel
from opendev.core.chat import Role
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.roles import model_for

SECRET = "sk-live-4242424242424242"
PASSPHRASE = "correct horse battery staple"  # in no shape that could be known


class Layers:
    """A home, a project and an environment; ``load`` resolves them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir()
        self.variables: dict[str, str] = {}

    @property
    def user_file(self) -> Path:
        return self.home / "settings.json"

    @property
    def project_file(self) -> Path:
        return self.project / ".opendev" / "settings.json"

    def user(self, value: Any) -> None:
        write(self.user_file, value)

    def own(self, value: Any) -> None:
        write(self.project_file, value)

    @property
    def environment(self) -> Environment:
        return Environment({"OPENDEV_HOME": str(self.home), **self.variables})

    def load(self, cli: Mapping[str, Any] | None = None) -> Loaded:
        return load_config(project=self.project, environment=self.environment, cli=cli)

    def changed(self, key: str, text: str) -> dict[str, Any]:
        return changed_settings(read_settings(self.user_file), key, text).settings

    def refused(self) -> str:
        with pytest.raises(OpenDevError) as caught:
            self.load()
        assert caught.value.info.kind is ErrorKind.CONFIG
        return str(caught.value)


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


@pytest.mark.req("CFG-03")
def test_the_defaults_are_a_whole_configuration(layers: Layers) -> None:
    loaded = layers.load()
    assert loaded.warnings == ()
    assert loaded.config.model == ""
    assert loaded.config.temperature == 0.2
    assert loaded.config.approval_level is ApprovalLevel.SEMI_AUTO
    assert loaded.config.models() == {}
    assert set(leaf_keys()) - set(loaded.origins) == {"max_context_tokens", "prices", "mcp_servers"}
    assert not layers.home.exists()


@pytest.mark.req("CFG-02")
@pytest.mark.parametrize(
    ("given", "winner"),
    [
        ("", "default"),
        ("e", "environment"),
        ("u", "user"),
        ("p", "project"),
        ("c", "command line"),
        ("eu", "user"),
        ("ep", "project"),
        ("up", "project"),
        ("eup", "project"),
        ("ec", "command line"),
        ("uc", "command line"),
        ("pc", "command line"),
        ("eupc", "command line"),
    ],
)
def test_each_layer_overrides_the_one_before(layers: Layers, given: str, winner: str) -> None:
    values = {
        "default": 100,
        "environment": 11,
        "user": 12,
        "project": 13,
        "command line": 14,
    }
    if "e" in given:
        layers.variables["OPENDEV_AGENTS__MAX_ITERATIONS"] = "11"
    if "u" in given:
        layers.user({"agents": {"max_iterations": 12}})
    if "p" in given:
        layers.own({"agents": {"max_iterations": 13}})
    loaded = layers.load({"agents.max_iterations": 14 if "c" in given else None})
    assert loaded.config.agents.max_iterations == values[winner]
    told = explain(loaded.origins, "agents.max_iterations")
    assert (told["value"], told["set_by"]) == (values[winner], winner)


@pytest.mark.req("CFG-05")
def test_the_loaded_configuration_does_not_change_with_the_files(layers: Layers) -> None:
    layers.user({"model": "openai/one"})
    loaded = layers.load()
    layers.user({"model": "openai/two"})
    assert loaded.config.model == "openai/one"


@pytest.mark.req("CFG-10")
def test_provider_model_and_prices_are_settings(layers: Layers) -> None:
    layers.user({"provider": "groq", "model": "llama", "prices": {"groq/llama": {"input": 1, "output": 2}}})
    config = layers.load().config
    assert config.models() == {Role.ACTION: "groq/llama"}
    assert config.prices == {"groq/llama": Price(input=1, output=2)}
    layers.variables["OPENDEV_PRICES"] = '{"a/b": {"input": 3, "output": 4}}'
    layers.user({})
    assert layers.load().config.prices == {"a/b": Price(input=3, output=4)}


@pytest.mark.req("CFG-04")
@pytest.mark.parametrize("name", ["api_key", "openai_api_key", "OPENAI_APIKEY", "secret", "github_token"])
@pytest.mark.parametrize("place", ["user", "project"])
def test_a_key_in_a_file_is_removed_and_told_without_its_value(layers: Layers, name: str, place: str) -> None:
    path = layers.user_file if place == "user" else layers.project_file
    write(path, {"model": "openai/x", name: SECRET, "agents": {name: SECRET}, "prices": {name: SECRET}})
    loaded = layers.load()
    assert loaded.config.model == "openai/x"
    assert SECRET not in repr(loaded)
    found = [w for w in loaded.warnings if "looks like a key" in w]
    assert [w for w in found if f"{path}, line 3: `{name}`" in w]
    assert len(found) == 3


@pytest.mark.req("CFG-04")
@pytest.mark.parametrize(
    "value",
    [
        {"model": {"api_key": SECRET, "x": SECRET}},
        {"temperature": SECRET},
        {"agents": {"max_depth": SECRET}},
        {"prices": {"a/b": {"input": SECRET, "output": 1}}},
        {"blocked_commands": SECRET},
        {"approval": SECRET},
    ],
)
def test_no_error_shows_what_may_be_a_key(layers: Layers, value: Any) -> None:
    layers.user(value)
    assert SECRET not in repr(resolve(read_files(layers.project, layers.environment), layers.environment))
    layers.user(json.loads(json.dumps(value).replace(SECRET, PASSPHRASE)))
    assert PASSPHRASE not in layers.refused()


@pytest.mark.req("CFG-04")
def test_setting_a_value_never_saves_a_key_back(layers: Layers) -> None:
    layers.user({"api_key": SECRET, "agents": {"token": SECRET, "max_depth": 1}})
    assert layers.changed("agents.max_total", "7") == {"agents": {"max_depth": 1, "max_total": 7}}


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ('{\n "model": "x"\n "provider": "y"\n}', ("line 3", "not valid JSON")),
        ("[1]", ("line 1", "one JSON object")),
        ('{"agents": ' + "[" * 100_000, ("nested too deeply",)),
        ('{\n\n "agents": {\n  "max_dept": 3\n }\n}', ("line 4", "`agents.max_dept`", "unknown setting")),
        (
            '{\n "agents": {\n  "max_depth": 99\n }\n}',
            ("line 3", "`agents.max_depth`", "99", "less than or equal to 8"),
        ),
        ('{"agents": 5}', ("line 1", "`agents`")),
        ('{\n "approval": "yolo"}', ("line 2", "`approval`", "yolo")),
    ],
)
@pytest.mark.parametrize("place", ["user", "project"])
def test_errors_name_file_line_and_key(
    layers: Layers, content: str, parts: tuple[str, ...], place: str
) -> None:
    path = layers.user_file if place == "user" else layers.project_file
    write(path, content)
    told = layers.refused()
    assert [part for part in (str(path), *parts) if part not in told] == []


def test_an_error_below_a_key_names_the_whole_path(layers: Layers) -> None:
    layers.user('{\n "prices": {"a/b": {"input": -1, "output": 1}}}')
    assert f"{layers.user_file}, line 2: `prices.a/b.input` is -1" in layers.refused()


def test_an_error_in_the_environment_names_the_variable(layers: Layers) -> None:
    layers.variables["OPENDEV_RETRY__MAX_TRIES"] = "0"
    assert "OPENDEV_RETRY__MAX_TRIES: `retry.max_tries` is 0" in layers.refused()


def test_a_byte_order_mark_and_an_empty_file_are_fine(layers: Layers) -> None:
    layers.user('\ufeff{"model": "a/b"}')
    layers.own("")
    assert layers.load().config.model == "a/b"


def test_a_file_that_is_no_text_is_a_sentence(layers: Layers) -> None:
    layers.user("")
    layers.user_file.write_bytes(b"\xff\xfe\x00")
    assert f"{layers.user_file}, line 1: no UTF-8 text (byte 0)" in layers.refused()


@pytest.mark.parametrize(
    ("key", "below", "mine", "kept"),
    [
        ("approval", "semi-auto", "auto", "semi-auto"),
        ("approval", "manual", "semi-auto", "manual"),
        ("approval", "auto", "manual", "manual"),
        ("approval", "auto", "semi-auto", "semi-auto"),
        ("auto_approve", False, True, False),
        ("auto_approve", True, False, False),
        ("runtime.address", "", "10.0.0.1:6379", ""),
        ("web.allow_private", False, True, False),
        ("web.allow_private", True, False, False),
        ("web.search_provider", "duckduckgo", "yandex", "duckduckgo"),
        ("sandbox.mode", "bubblewrap", "off", "bubblewrap"),
        ("sandbox.network", "deny", "allow", "deny"),
        ("sandbox.network", "allow", "deny", "deny"),
        ("sandbox.write", [], ["~"], []),
        ("sandbox.hide", ["~/.ssh"], [], ["~/.ssh"]),
        ("cost.assumed_input_usd", 3.0, 0.0, 3.0),
        ("prices", {"a/b": {"input": 1, "output": 1}}, {"a/b": {"input": 0, "output": 0}}, None),
    ],
)
def test_a_projects_file_may_only_narrow(layers: Layers, key: str, below: Any, mine: Any, kept: Any) -> None:
    layers.user({key: below})
    layers.own({key: mine})
    loaded = layers.load()
    kept = below if kept is None else kept
    assert explain(loaded.origins, key)["value"] == kept
    widened = kept != mine
    assert [str(layers.project_file) in w and key in w for w in loaded.warnings] == [True] * widened


def test_prices_of_a_project_alone_are_left_out_too(layers: Layers) -> None:
    layers.own({"prices": {"a/b": {"input": 0, "output": 0}}})
    loaded = layers.load()
    assert (loaded.config.prices, len(loaded.warnings)) == ({}, 1)


@pytest.mark.req("SAF-06")
def test_deny_read_adds_up_and_a_project_takes_nothing_back(layers: Layers) -> None:
    default = layers.load().config.deny_read
    assert {".env", ".ssh", "id_rsa", "*.pem", ".netrc"} <= set(default)
    layers.user({"deny_read": ["secrets/", "!.env"]})
    layers.own({"deny_read": ["!.ssh", " !id_rsa", "more.txt"]})
    assert layers.load().config.deny_read == (*default, "secrets/", "!.env", "more.txt")


@pytest.mark.req("CFG-10")
def test_blocked_commands_of_a_project_are_added(layers: Layers) -> None:
    layers.user({"blocked_commands": ["curl *"]})
    layers.own({"blocked_commands": ["make deploy"]})
    assert layers.load().config.blocked_commands == ("curl *", "make deploy")
    layers.own({"blocked_commands": "make deploy"})
    assert "`blocked_commands`" in layers.refused()


@pytest.mark.parametrize(
    ("user", "own", "level"),
    [
        ({"auto_approve": True}, {}, ApprovalLevel.AUTO),
        ({"auto_approve": True}, {"approval": "manual"}, ApprovalLevel.MANUAL),
        ({"auto_approve": True, "approval": "manual"}, {}, ApprovalLevel.AUTO),
        ({"approval": "manual"}, {"auto_approve": True}, ApprovalLevel.MANUAL),
    ],
)
def test_a_level_speaks_after_auto_approve_of_a_lower_layer(
    layers: Layers, user: Any, own: Any, level: ApprovalLevel
) -> None:
    layers.user(user)
    layers.own(own)
    assert layers.load().config.approval_level is level


@pytest.mark.parametrize("word", ["true", "yes", "1"])
def test_the_command_line_speaks_after_auto_approve_of_the_environment(layers: Layers, word: str) -> None:
    layers.variables["OPENDEV_AUTO_APPROVE"] = word
    assert layers.load().config.approval_level is ApprovalLevel.AUTO
    assert layers.load({"approval": "manual"}).config.approval_level is ApprovalLevel.MANUAL


@pytest.mark.req("MOD-02")
@pytest.mark.parametrize("number", range(16))
def test_roles_fall_back_as_configured(layers: Layers, number: int) -> None:
    names = [role.value for role in Role if role is not Role.ACTION]
    named = {name: f"p/{name}" for bit, name in enumerate(names) if number >> bit & 1}
    layers.user({"model": "p/action", "roles": named})
    models = layers.load().config.models()
    thinking = named.get("thinking", "p/action")
    expected = {
        Role.ACTION: "p/action",
        Role.THINKING: thinking,
        Role.CRITIQUE: named.get("critique", thinking),
        Role.COMPACT: named.get("compact", "p/action"),
    }
    assert {role: model_for(role, models, lambda _: False) for role in expected} == expected
    assert model_for(Role.VISION, models, lambda _: True) == named.get("vision", "p/action")
    if "vision" not in named:
        with pytest.raises(OpenDevError, match="vision"):
            model_for(Role.VISION, models, lambda _: False)


def test_explain_shows_every_layer_and_helps_with_a_wrong_key(layers: Layers) -> None:
    layers.variables["OPENDEV_MODEL"] = "a/env"
    layers.own({"model": "a/project"})
    assert explain(layers.load().origins, "model") == {
        "key": "model",
        "value": "a/project",
        "set_by": "project",
        "variable": "OPENDEV_MODEL",
        "layers": [
            {"layer": "default", "place": "defaults.toml", "line": 0, "value": ""},
            {"layer": "environment", "place": "OPENDEV_MODEL", "line": 0, "value": "a/env"},
            {"layer": "project", "place": str(layers.project_file), "line": 2, "value": "a/project"},
        ],
    }
    assert explain(layers.load().origins, "prices")["set_by"] == "nothing"
    with pytest.raises(OpenDevError, match=r"agents\.max_depth") as caught:
        explain(layers.load().origins, "max_depth")
    assert caught.value.info.kind is ErrorKind.USAGE


def test_changing_a_setting_keeps_the_rest_and_writes_nothing(layers: Layers) -> None:
    layers.user({"model": "a/b", "agents": {"max_depth": 1}})
    before = layers.user_file.read_bytes()
    assert layers.changed("agents.max_total", "3") == {
        "model": "a/b",
        "agents": {"max_depth": 1, "max_total": 3},
    }
    assert layers.user_file.read_bytes() == before
    with pytest.raises(OpenDevError, match="no setting `modle`"):
        layers.changed("modle", "x")


Read = Callable[[AppConfig], Any]
THINKS = Roles(thinking="m", critique="", vision="", compact="")
FIELDS: tuple[tuple[str, Any, Read], ...] = (
    ("model", "a/b", lambda c: c.models()[Role.ACTION]),
    ("provider", "azure", lambda c: c.named_model("gpt").removesuffix("/gpt")),
    ("max_context_tokens", 32_000, lambda c: c.max_context_tokens),
    ("temperature", 1.5, lambda c: c.temperature),
    ("max_tokens", 99, lambda c: c.max_tokens),
    ("thinking_model", "c/d", lambda c: c.models()[Role.THINKING]),
    (
        "thinking_provider",
        "e",
        lambda c: c.model_copy(update={"roles": THINKS}).models()[Role.THINKING][0],
    ),
    ("auto_approve", True, lambda c: c.approval_level is ApprovalLevel.AUTO),
    ("web_search_provider", "bing", lambda c: c.web.search_provider),
    ("mcp_servers", {"x": {"command": "y"}}, lambda c: c.mcp_servers),
    ("blocked_commands", ["make deploy"], lambda c: list(c.blocked_commands)),
)


@pytest.mark.req("CFG-01", "CFG-11")
@pytest.mark.parametrize(("field", "value", "read"), FIELDS)
def test_every_field_of_the_paper_counts(layers: Layers, field: str, value: Any, read: Read) -> None:
    """Catalogue F, by its own names, in a file and as a variable."""
    layers.user({field: value})
    assert read(layers.load().config) == value
    layers.user({})
    layers.variables[f"OPENDEV_{field.upper()}"] = value if isinstance(value, str) else json.dumps(value)
    assert read(layers.load().config) == value


@pytest.mark.req("CFG-01", "MOD-01")
def test_each_role_has_a_model_and_a_provider(layers: Layers) -> None:
    roles = ("thinking", "critique", "vision", "compact")
    layers.user({"model": "m", "provider": "p", **{f"{role}_model": role for role in roles}})
    assert layers.load().config.models() == {
        Role.ACTION: "p/m",
        **{Role(role): f"p/{role}" for role in roles},
    }
    layers.own({f"{role}_provider": "q" for role in roles})
    assert layers.load().config.models() == {
        Role.ACTION: "p/m",
        **{Role(role): f"q/{role}" for role in roles},
    }
    layers.own({"roles": {"thinking": "r/t"}})
    assert layers.load().config.models()[Role.THINKING] == "r/t"


def test_a_setting_in_two_spellings_is_refused(layers: Layers) -> None:
    layers.user('{\n "thinking_model": "a/b",\n "roles": {"thinking": "c/d"}\n}')
    assert "line 3: `roles.thinking` says again what line 2 says" in layers.refused()
    layers.user({"thinking_model": "a/b"})
    assert layers.changed("thinking_model", "c/d") == {"roles": {"thinking": "c/d"}}
