"""Ticket files: formats, strictness, problems with file, line and key."""

import json
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ticket import Dirty, SwarmPlan
from opendev.swarm.tickets import Overrides, load_plan, missing_parts
from support.fake_swarm import SPECS

GOOD = """\
[swarm]
into = "swarm/x"
verify = "make test"

[[task]]
id = "one"
goal = "One is true."
scope = ["a/**"]
verify = "true"
done = "green"
recipe = [ { replace = { pattern = "a", with = "b", glob = "*.py" } } ]

[[task]]
id = "two"
goal = "Two is true."
depends_on = ["one"]
"""


def load(tmp_path: Path, text: str, name: str = "t.toml", **overrides: object) -> SwarmPlan:
    path = tmp_path / name
    path.write_text(text)
    return load_plan(path, agents=SPECS, overrides=Overrides(**overrides))  # pyright: ignore[reportArgumentType]


def problems(tmp_path: Path, text: str, name: str = "t.toml") -> list[str]:
    with pytest.raises(OpenDevError) as caught:
        load(tmp_path, text, name)
    assert caught.value.info.kind is ErrorKind.USAGE
    lines = caught.value.info.message.splitlines()
    return [line.replace(f"{tmp_path}/", "") for line in (lines[1:] if len(lines) > 1 else lines)]


@pytest.mark.req("SWM-05")
def test_the_four_formats_give_one_plan(tmp_path: Path) -> None:
    plan = load(tmp_path, GOOD)
    raw = {
        "swarm": {"into": "swarm/x", "verify": "make test"},
        "task": [
            {
                "id": "one",
                "goal": "One is true.",
                "scope": ["a/**"],
                "verify": "true",
                "done": "green",
                "recipe": [{"replace": {"pattern": "a", "with": "b", "glob": "*.py"}}],
            },
            {"id": "two", "goal": "Two is true.", "depends_on": ["one"]},
        ],
    }
    assert load(tmp_path, json.dumps(raw), "t.json") == plan
    assert load(tmp_path, json.dumps(raw, indent=1), "t.yaml") == plan
    lines = [{"swarm": raw["swarm"]}, *raw["task"]]
    assert load(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n", "t.jsonl") == plan
    assert SwarmPlan.model_validate_json(plan.to_json()) == plan


def test_options_win_over_the_file(tmp_path: Path) -> None:
    plan = load(tmp_path, GOOD, into="other", concurrency=9, dirty="snapshot", max_cost_usd=2.5)
    swarm = plan.swarm
    assert (swarm.into, swarm.concurrency, swarm.dirty, swarm.max_cost_usd) == (
        "other",
        9,
        Dirty.SNAPSHOT,
        2.5,
    )
    assert swarm.verify == "make test"


@pytest.mark.req("SWM-05")
def test_all_problems_at_once_with_line_and_key(tmp_path: Path) -> None:
    text = """\
[swarm]
into = "a b"
concurency = 3

[[task]]
id = "One!"
goal = '''
id = "not a key"
'''

[[task]]
id = "two"
depends_on = ["ghost"]
agent = "PR-Reviewer"
attempts = "2"

[[task]]
id = "three"
goal = "g"
scope = ["../up/**"]
recipe = [
  { replace = { pattern = "a", glob = "*" } },
]

[[task]]
id = "three"
goal = "g"
depends_on = ["nobody"]
agent = "PR-Reviewer"
review = ["Ghost"]

[tasks]
"""
    found = problems(tmp_path, text)
    for expected in (
        "t.toml:3: swarm.concurency: unknown key",
        "t.toml:6: task[0].id: String should match pattern",
        "t.toml:11: task[1].goal: is required",
        "t.toml:15: task[1].attempts: Input should be a valid integer",
        "t.toml:21: task[2].recipe[0].replace.with: is required",
        "t.toml:28: task[3].depends_on: there is no ticket `nobody`",
        "t.toml:29: task[3].agent: the agent `PR-Reviewer` may not write",
        "t.toml:30: task[3].review: there is no agent `Ghost`; known are Coder, PR-Reviewer",
        "t.toml:32: tasks: unknown key",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)


def test_double_ids_bad_globs_and_branch_names(tmp_path: Path) -> None:
    text = GOOD.replace('id = "two"', 'id = "one"').replace("a/**", "/etc/**").replace("swarm/x", "a..b")
    assert problems(tmp_path, text.replace('depends_on = ["one"]', "")) == [
        "t.toml:2: swarm.into: `a..b` is not a branch name",
        "t.toml:8: task[0].scope: `/etc/**` is not a pattern relative to the repository's root",
        "t.toml:14: task[1].id: `one` is the id of task[0] as well",
    ]


def test_cycles_are_named(tmp_path: Path) -> None:
    text = '[swarm]\ninto="x"\n' + "".join(
        f'[[task]]\nid="{name}"\ngoal="g"\ndepends_on=["{parent}"]\n'
        for name, parent in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    )
    assert problems(tmp_path, text) == ["t.toml:6: task[0].depends_on: a cycle: a -> b -> c -> a"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.toml", "[swarm\n", "t.toml:1: This is not TOML"),
        ("t.json", '{\n"swarm": ,}', "t.json:2: This is not JSON"),
        ("t.json", '{"task": [], "task": []}', "t.json:1: This is not JSON: the key 'task' is given twice"),
        ("t.json", "[" * 100_000, "t.json:1: The ticket file is nested too deeply."),
        ("t.yaml", "a: [\n", "t.yaml:2: This is not YAML"),
        ("t.yaml", "a: 1\nb: 2\na: 3\n", "t.yaml:3: The key 'a' is given twice."),
        ("t.yaml", "a: &x [1]\nb: *x\n", "t.yaml:1: YAML aliases are not accepted."),
        ("t.yaml", "- 1\n", "t.yaml:1: A ticket file is a table"),
        ("t.yaml", "when: !!python/object:os.system x\n", "t.yaml:1: This is not YAML"),
        ("t.jsonl", '{"swarm": {"into": "x"}}\n{"id": 1\n', "t.jsonl:2: This is not JSON"),
        ("t.txt", "", "t.txt:1: A ticket file ends in"),
        ("t.toml", '[swarm]\ninto = "x"\n', "t.toml:1: task: there is no task"),
        ("t.toml", 'task = 3\n[swarm]\ninto = "x"\n', "t.toml:1: task: must be a list of tables"),
    ],
)
def test_unreadable_files_name_the_line(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert problems(tmp_path, text, name)[0].startswith(expected)


def test_a_missing_file_and_binary_content(tmp_path: Path) -> None:
    with pytest.raises(OpenDevError, match="cannot be read"):
        load_plan(tmp_path / "none.toml", agents=SPECS)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OpenDevError, match="not UTF-8"):
        load_plan(tmp_path / "b.toml", agents=SPECS)


def test_yaml_lines(tmp_path: Path) -> None:
    text = "swarm:\n  into: x\ntask:\n  - id: a\n    goal: g\n    oops: 1\n  - id: b\n    goal: g\n    scope: src\n"
    assert problems(tmp_path, text, "t.yaml") == [
        "t.yaml:6: task[0].oops: unknown key",
        "t.yaml:9: task[1].scope: Input should be a valid array",
    ]


@pytest.mark.req("SWM-05")
def test_missing_parts_are_warnings(tmp_path: Path) -> None:
    assert missing_parts(load(tmp_path, GOOD)) == ("Ticket two has no scope and no verify and no done.",)


def test_many_problems_are_bounded(tmp_path: Path) -> None:
    text = '[swarm]\ninto="x"\n' + "".join(f'[[task]]\nid="t{n}"\n' for n in range(70))
    found = problems(tmp_path, text)
    assert found[-1] == "... and 20 more"
    assert len(found) == 51
