"""permissions.json: the two stores, consent, errors that name the line, and an "always" that survives (APR-05)."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.permissions import Rule, rule_schema
from opendev.store import permissions as store
from opendev.store.consent import agree
from opendev.store.permissions import add_rules, load_permissions, read_rules


def fields(pattern: str, action: str = "auto_approve", **more: Any) -> dict[str, Any]:
    return {"rule_type": "prefix", "pattern": pattern, "action": action, **more}


def write(path: Path, *rules: dict[str, Any]) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps({"version": 1, "rules": rules}, indent=1).encode()
    path.write_bytes(data)
    return data


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "proj").mkdir()
    return tmp_path / "proj"


def patterns(rules: tuple[Rule, ...]) -> list[tuple[str, str]]:
    return [(rule.pattern, rule.action.value) for rule in rules]


@pytest.mark.req("APR-05", "APR-03")
def test_a_projects_rules_count_fully_only_after_consent_to_their_content(home: Path, project: Path) -> None:
    write(home / "permissions.json", fields("make"), fields("npm", "auto_deny", priority=5), fields("off", enabled=False),
          fields("here", project=str(project)), fields("elsewhere", project="/other"))  # fmt: skip
    own = project / ".opendev/permissions.json"
    data = write(
        own, fields("make", "auto_deny"), fields("curl"), fields("wget", "require_approval", priority=9)
    )
    found = load_permissions(home, project)
    assert patterns(found.permissions.rules) == [
        ("npm", "auto_deny"),
        ("make", "auto_approve"),
        ("here", "auto_approve"),
    ]
    assert patterns(found.permissions.narrowing) == [("wget", "require_approval"), ("make", "auto_deny")]
    assert len(found.notes) == 1
    assert str(own) in found.notes[0]
    agree(home, str(own), hashlib.sha256(data).hexdigest())
    found = load_permissions(home, project)
    assert patterns(found.permissions.rules) == [
        ("wget", "require_approval"), ("npm", "auto_deny"), ("make", "auto_deny"), ("curl", "auto_approve"), ("here", "auto_approve"),
    ]  # fmt: skip
    assert (found.permissions.narrowing, found.notes) == ((), ())
    write(own, fields("make"), fields("curl"))  # other content: consent is gone
    found = load_permissions(home, project)
    assert ("curl", "auto_approve") not in patterns(found.permissions.rules)


def test_no_file_is_no_rule(home: Path, project: Path) -> None:
    assert load_permissions(home, project).permissions.rules == ()


@pytest.mark.req("APR-05", "SAF-09")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"version": 1,\n "rules": [}', "line 2: not valid JSON"),
        ('{"rules": [\n{"rule_type": "prefix", "pattern": "a", "action": "auto_deny"},\n{"rule_type": "prefix",\n "pattern": "(",\n "action": "maybe"}]}', "line 5: `rules[1].action`"),
        ('{"rules": [\n\n{"rule_type": "pattern", "pattern": "(", "action": "auto_deny"}]}', "line 3: `rules[0]`: `pattern` is no regular expression"),
        ('{"rules": [{"rule_type": "prefix", "pattern": "a", "action": "auto_deny", "wat": 1}]}', "`rules[0].wat`"),
        ('{"version": 2,\n "rules": []}', "line 1: `version`"),
        ('{"rules": [],\n "rules": []}', "the key `rules` stands twice"),
        ("[]", "permissions.json, line 1"),
        ("\xff\xfe", "line 1"),
        ("[" * 100_000, "line 1"),
        ("", "line 1: not valid JSON"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["home", "project"])
def test_a_file_that_is_unclear_is_an_error_that_names_the_place(
    home: Path, project: Path, text: str, says: str, place: str
) -> None:
    path = (home if place == "home" else project / ".opendev") / "permissions.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(OpenDevError) as caught:
        load_permissions(home, project)
    assert caught.value.info.kind is ErrorKind.CONFIG
    assert str(path) in str(caught.value)
    assert says in str(caught.value), str(caught.value)


def test_files_that_cannot_be_used_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "permissions.json"
    path.mkdir(parents=True)
    with pytest.raises(OpenDevError, match="cannot be read"):
        read_rules(path)
    path.rmdir()
    write(path, *(fields(f"a{n}") for n in range(30)))
    monkeypatch.setattr(store, "MAX_BYTES", 1_000)
    with pytest.raises(OpenDevError, match="larger than"):
        read_rules(path)


@pytest.mark.req("APR-05")
def test_always_is_saved_once_beside_what_stands_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "permissions.json", fields("make", "auto_deny", id="mine", priority=3))
    new = Rule.model_validate(fields("npm install", project="/p", priority=50))
    threads = [threading.Thread(target=add_rules, args=(home, (new,), SystemClock())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_rules(home / "permissions.json")
    assert [(r.pattern, r.project, r.priority, bool(r.id), bool(r.created_at)) for r in found] == [
        ("make", "", 3, True, False), ("npm install", "/p", 50, True, True),
    ]  # fmt: skip
    assert (home / "permissions.json").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(store, "MAX_RULES", 2)
    with pytest.raises(OpenDevError, match="2 are the most"):
        add_rules(home, (new.model_copy(update={"pattern": "other"}),), SystemClock())
    (home / "permissions.json").write_text("{")
    with pytest.raises(OpenDevError, match="not valid JSON"):
        add_rules(home, (new,), SystemClock())
    assert (home / "permissions.json").read_text() == "{"


def test_the_schema_comes_from_the_model_and_stands_in_the_documents() -> None:
    schema = rule_schema()
    rule = schema["$defs"]["Rule"]
    assert set(rule["required"]) == {"rule_type", "pattern", "action"}
    assert set(schema["$defs"]["RuleType"]["enum"]) == {"pattern", "command", "prefix", "danger"}
    docs = Path(__file__).resolve().parents[3] / "docs"
    assert json.loads((docs / "permissions.schema.json").read_text()) == schema
    page = (docs / "approvals.md").read_text()
    for name in (
        *rule["properties"],
        *schema["$defs"]["RuleType"]["enum"],
        *schema["$defs"]["Action"]["enum"],
    ):
        assert f"`{name}`" in page, name
    example = page.split("```json\n")[1].split("```")[0]
    assert len(store.parse_rules(example.encode(), Path("example"))) >= 4
