"""The worked examples of the field, end to end against a scripted model: a new module with tests, a ticket, a step limit, vague goals."""

from collections.abc import Callable

import pytest
from support.command_line import Sandbox
from support.model_server import Call, ModelServer, call, calls, text
from support.repos import commit_files, make_repo

pytestmark = pytest.mark.usefixtures("openai_loaded")
Serve = Callable[..., ModelServer]
JSON = ("--output", "json", "--approve", "auto")
CALCULATOR = """\
def add(a, b):
    return a + b


def sub(a, b):
    return a - b


def mul(a, b):
    return a * b


def div(a, b):
    return a / b
"""
TESTS = """\
import pytest
from calculator import add, div, mul, sub


def test_the_four():
    assert (add(2, 3), sub(2, 3), mul(2, 3), div(6, 3)) == (5, -1, 6, 2)


def test_nothing_divides_by_zero():
    with pytest.raises(ZeroDivisionError):
        div(1, 0)
"""
TASK = "Create calculator.py with add, sub, mul and div; div by zero raises ZeroDivisionError. Write pytest tests, run them until they are green, summarise."
PYTEST = "python -B -m pytest -q -p no:cacheprovider test_calculator.py"


def write(path: str, content: str) -> Call:
    return Call("write_file", {"file_path": path, "content": content})


@pytest.mark.slow
@pytest.mark.req("BLG-21", "BLG-17")
@pytest.mark.parametrize("seeded", [False, True])
def test_the_worked_task_takes_five_calls_and_two_more_for_a_seeded_bug(
    sandbox: Sandbox, serve: Serve, seeded: bool
) -> None:
    first = CALCULATOR.replace("a * b", "a + b") if seeded else CALCULATOR
    repair = (
        call("edit_file", {"file_path": "calculator.py", "old_content": "def mul(a, b):\n    return a + b",
                           "new_content": "def mul(a, b):\n    return a * b"}),
        call("run_command", {"command": PYTEST}),
    )  # fmt: skip
    server = serve(
        call("list_files", {"pattern": "*.py"}),
        calls(write("calculator.py", first)),
        calls(write("test_calculator.py", TESTS)),
        call("run_command", {"command": PYTEST}),
        *(repair if seeded else ()),
        text("calculator.py has the four functions; two tests pass."),
    )
    sandbox.env["OPENDEV_MEMORY__PLAYBOOK"] = "false"  # no call beside the work itself
    report = sandbox.here("-p", TASK, *JSON).report
    assert (report["status"], report["exit_code"]) == ("done", 0)
    assert report["model_calls"] == len(server.seen) == (7 if seeded else 5)
    assert report["files_changed"] == ["calculator.py", "test_calculator.py"]
    assert (sandbox.project / "calculator.py").read_text() == CALCULATOR
    ran = server.seen[4]
    assert ran.says("1 failed, 1 passed") is seeded
    assert server.seen[-1].says("2 passed")


UNGUARDED = 'def title(user):\n    return user["name"].title()\n'
GUARD = '    if user is None:\n        return "nobody"\n'
GUARDED = UNGUARDED.replace("\n", f"\n{GUARD}", 1)
CHECK = "from users import title\n\nassert title({'name': 'ann'}) == 'Ann'\n"
REGRESSION = "assert title(None) == 'nobody'\n"
TICKET = (
    *("-p", "title(None) fails with a TypeError; it must return 'nobody'."),
    *("--scope", "users.py", "--scope", "test_users.py", "--verify", "python3 test_users.py"),
    *("--done", "The guard is there and a regression test covers it."),
)


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"file_path": path, "old_content": old, "new_content": new})


@pytest.mark.req("BLG-22", "BLG-05")
def test_a_ticket_of_four_parts_ends_green_with_a_diff_summary_and_nothing_outside(
    sandbox: Sandbox, serve: Serve
) -> None:
    repo = sandbox.project = make_repo(sandbox.project / "repo")
    commit_files(repo, {"users.py": UNGUARDED, "test_users.py": CHECK})
    server = serve(
        call("read_file", {"file_path": "users.py"}),
        calls(edit("test_users.py", CHECK, CHECK + REGRESSION), write("helpers.py", "# not asked for\n")),
        text("Done."),  # a claim that the verification refuses: the guard is missing
        calls(edit("users.py", "def title(user):\n", f"def title(user):\n{GUARD}")),
        call("run_command", {"command": "git diff --stat"}),
        text("users.py: a guard for None. test_users.py: a regression test. 2 files changed."),
    )
    sandbox.env["OPENDEV_MEMORY__PLAYBOOK"] = "false"
    report = sandbox.here(*TICKET, *JSON).report
    assert (report["status"], report["files_changed"]) == ("done", ["test_users.py", "users.py"])
    for part in (
        "You may change only: users.py, test_users.py", "title(None) fails",
        "This command must exit 0: python3 test_users.py", "It is done when: The guard is there",
    ):  # fmt: skip
        assert server.seen[0].says(part), part
    assert server.seen[2].says("helpers.py is outside of what this task may change")
    assert not (repo / "helpers.py").exists()
    assert server.seen[3].says("TypeError")
    assert (repo / "users.py").read_text() == GUARDED
    assert server.seen[5].says("2 files changed")


@pytest.mark.req("BLG-08")
def test_the_step_limit_comes_from_the_environment_and_ends_in_a_report(
    sandbox: Sandbox, serve: Serve
) -> None:
    sandbox.env["OPENDEV_AGENTS__MAX_ITERATIONS"] = "3"
    looks = (call("list_files", {"path": ".", "max_results": n}) for n in (1, 2, 3))
    server = serve(*looks, text("So far: nothing but looking."))
    report = sandbox.here("-p", "Look around.", *JSON).report
    assert (report["status"], report["exit_code"], report["turns"]) == ("iteration_cap", 1, 3)
    assert report["text"] == "So far: nothing but looking."
    assert "limit of 3 iterations" in report["error"]["message"]
    assert "tools" not in server.seen[3].body
    assert len(server.seen) == 4


@pytest.mark.req("BLG-19")
@pytest.mark.parametrize(
    ("goal", "word"),
    [
        ("Improve the code.", "improve"),
        ("Make the page look good.", "taste"),
        ("Make it faster.", "measurement"),
    ],
)
def test_a_goal_that_nothing_can_check_is_asked_back(
    sandbox: Sandbox, serve: Serve, goal: str, word: str
) -> None:
    question = {
        "question": "What shall be true?",
        "header": "Goal",
        "options": [{"label": "A"}, {"label": "B"}],
    }
    server = serve(call("ask_user", {"questions": [question]}), text("I do not know what you want."))
    report = sandbox.here("-p", goal, *JSON).report
    assert server.seen[0].says("find out what would prove it done")
    assert server.seen[0].says(word.title()) or server.seen[0].says(word)
    assert (report["status"], report["exit_code"]) == ("unanswered", 7)


@pytest.mark.req("BLG-19")
def test_a_goal_that_can_be_checked_is_worked_on(sandbox: Sandbox, serve: Serve) -> None:
    server = serve(text("Done."))
    sandbox.here("-p", "Improve `parse` in a.py: it must accept 1e3.", *JSON)
    assert not server.seen[0].says("find out what would prove it done")
