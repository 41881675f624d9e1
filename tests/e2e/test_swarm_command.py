"""The `opendev swarm` command: ticket files, refusals before the start, dirty checkouts, output forms, two batches at once."""

import json
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.repos import commit_files, fingerprint, git, tree_files
from support.repos import write as write_files
from support.swarm_cli import CHECK, Bench, make_bench, put, report_of, sh, sub, task

pytestmark = pytest.mark.slow
BROKEN = """\
[swarm]
into = "swarm/x"
concurency = 4

[[task]]
id = "One Two"
goal = "g"

[[task]]
id = "b"
depends_on = ["ghost"]
agent = "Nobody"

[[task]]
id = "c"
goal = "g"
scope = ["../up"]
recipe = [ { paint = { color = "red" } } ]
depends_on = ["d"]

[[task]]
id = "d"
goal = "g"
depends_on = ["c"]
review = ["Coder2"]
attempts = 0
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


def untouched(bench: Bench, *words: str) -> str:
    """The complaint of a command that is refused and starts nothing."""
    before = fingerprint(bench.repo)
    done = bench.opendev("swarm", *words, "--runtime", "local", "--output", "json")
    told = json.loads(done.stdout)
    assert (done.code, told["exit_code"], told["tasks"], told["run_id"]) == (2, 2, [], ""), done
    assert bench.sandbox.runs() == []
    assert git(bench.repo, "branch", "--list", "swarm/*") == ""
    bench.assert_tidy(before)
    return done.stderr


@pytest.mark.req("SWM-05")
def test_all_problems_of_a_ticket_file_at_once_with_their_lines(bench: Bench) -> None:
    file = bench.place / "broken.toml"
    file.write_text(BROKEN)
    said = untouched(bench, str(file))
    wanted = {
        3: "concurency", 6: "task[0].id", 9: "task[1].goal", 11: "ghost", 12: "Nobody", 17: "../up", 18: "a step has exactly one",
        25: "Coder2", 26: "attempts",
    }  # fmt: skip
    for line, word in wanted.items():
        assert any(f"broken.toml:{line}:" in row and word in row for row in said.splitlines()), (
            line,
            word,
            said,
        )
    file.write_text("[swarm\n")
    assert "broken.toml:1:" in untouched(bench, str(file))
    assert "cannot be read" in untouched(bench, str(bench.place / "missing.toml"))


def test_refusals_before_anything_starts(bench: Bench) -> None:
    file = str(bench.tickets(task("one", put("one.txt", "1\n"))))
    git(bench.repo, "switch", "-q", "-c", "side")
    assert "not a branch name" in untouched(bench, file, "--into", "a..b")
    assert "--max-cost" in untouched(bench, file, "--max-cost", "abc")
    assert "names no commit" in untouched(bench, file, "--base", "nowhere")
    assert "is checked out" in untouched(bench, file, "--into", "side")
    assert "no run r1" in bench.opendev("swarm", "status", "r1").stderr
    assert bench.opendev("swarm", "status", "../x").code == 2
    assert bench.opendev("swarm", "resume", "..").code == 2


@pytest.mark.req("SWM-02")
def test_a_dry_run_shows_waves_and_runs_nothing(bench: Bench) -> None:
    file = bench.tickets(
        task("a", sub("greet", "salute", "lib.py"), scope=["lib.py"]),
        task("b", put("b.txt", "b\n"), scope=["*.txt"], depends_on=["a"]),
        task("c", put("lib.py", "x = 1\n"), scope=["lib.py"]),
        verify=CHECK,
    )
    before = fingerprint(bench.repo)
    shown = bench.opendev("swarm", str(file), "--dry-run")
    assert shown.code == 0
    assert "wave 1: a, c" in shown.stdout
    assert "wave 2: b" in shown.stdout
    assert "a and c" in shown.stdout
    plan = json.loads(bench.opendev("swarm", str(file), "--dry-run", "--output", "json").stdout)
    assert plan["waves"] == [["a", "c"], ["b"]]
    assert bench.sandbox.runs() == []
    assert git(bench.repo, "branch", "--list", "swarm/*") == ""
    bench.assert_tidy(before)


@pytest.mark.req("SWM-04")
def test_a_dirty_checkout_is_refused_taken_along_or_ignored(bench: Bench) -> None:
    write_files(
        bench.repo,
        {
            "lib.py": "def greet():\n    return 'dirty'\n",
            "fresh.txt": "f\n",
            "staged.txt": "s\n",
            ".env": "K=1\n",
        },
    )
    git(bench.repo, "add", "staged.txt")
    tasks = (task("one", put("one.txt", "1\n"), verify="test -f one.txt"),)
    file = str(bench.tickets(*tasks))
    said = untouched(bench, file)
    assert all(name in said for name in ("lib.py", "fresh.txt", "staged.txt"))
    assert "--dirty snapshot" in said
    ignored = bench.run(*tasks, options=("--dirty", "ignore"), into="swarm/ignored")
    assert (ignored.code, ignored.run.base) == (0, git(bench.repo, "rev-parse", "HEAD"))
    assert set(tree_files(bench.repo, "swarm/ignored")) == {
        "lib.py",
        "app.py",
        "check.py",
        ".gitignore",
        "one.txt",
    }
    assert "dirty" not in tree_files(bench.repo, "swarm/ignored")["lib.py"]
    taken = bench.run(*tasks, options=("--dirty", "snapshot"), into="swarm/taken")
    files = tree_files(bench.repo, "swarm/taken")
    assert taken.code == 0
    assert "dirty" in files["lib.py"]
    assert {"fresh.txt", "staged.txt", "one.txt"} <= set(files)


def test_an_untracked_ticket_file_in_the_repository_is_no_dirt(bench: Bench) -> None:
    inside = bench.repo / "tickets.json"
    inside.write_text(bench.tickets(task("one", put("one.txt", "1\n"))).read_text())
    before = fingerprint(bench.repo)
    done = bench.opendev("swarm", "run", "tickets.json", "--runtime", "local", "--output", "json")
    assert (done.code, done.statuses) == (0, {"one": "merged"}), done
    assert "tickets.json" not in tree_files(bench.repo, "swarm/x")
    bench.assert_tidy(before)


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


@pytest.mark.req("SWM-15", "CLI-06")
@pytest.mark.soak
def test_reports_in_every_form_and_a_stream_of_json(bench: Bench) -> None:
    file = bench.tickets(
        task("good", put("good.txt", "g\n")),
        task("bad", put("bad.txt", "b\n"), verify="printf '<script>alert(1)</script>\\033[2J &\\n'; exit 1"),
        task("child", put("c.txt", ""), depends_on=["bad"]),
    )
    before = fingerprint(bench.repo)
    done = bench.opendev("swarm", str(file), "--runtime", "local", "--output", "stream-json")
    rows: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert all({"schema", "seq", "at", "run", "agent", "kind"} <= row.keys() for row in rows)
    numbers = [row["seq"] for row in rows if row["kind"] not in ("text_delta", "tool_output")]
    assert numbers == list(range(1, len(numbers) + 1))
    last = rows[-1]
    assert (last["kind"], last["exit_code"], done.code) == ("report", 3, 3)
    assert {"task_changed", "verified", "merged", "agent_started", "agent_finished"} <= {
        row["kind"] for row in rows
    }
    run = last["run_id"]
    written = json.loads((bench.home / "runs" / run / "report.json").read_text())
    assert {key: last[key] for key in written} == written
    shown = report_of(json.loads(bench.opendev("swarm", "report", run, "--format", "json").stdout))
    assert shown.tasks == report_of(written).tasks
    suite = ElementTree.fromstring(bench.opendev("swarm", "report", run, "--format", "junit").stdout)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors")) == (
        "3",
        "1",
        "1",
        "0",
    )
    page = bench.opendev("swarm", "report", run, "--format", "html").stdout
    assert "script" not in Tags(page).found
    assert "&lt;script&gt;" in page
    text = bench.opendev("swarm", "report", run).stdout
    assert all(word in text for word in ("good", "bad", "child", "merged", "verify_failed", "skipped"))
    assert "\x1b" not in text + page + done.stderr
    status = json.loads(bench.opendev("swarm", "status", run).stdout)
    assert (status["state"], status["tasks"]["child"]) == ("finished", "skipped")
    bench.assert_tidy(before)


def test_output_stays_pure_while_everything_talks(bench: Bench) -> None:
    bench.sandbox.env |= {"PYTHONWARNINGS": "always", "LITELLM_LOG": "DEBUG"}
    loud = "for i in 1 2 3 4 5 6 7 8 9; do echo out; echo err >&2; printf '\\377\\000{'; done"
    done = bench.run(
        *(task(f"t{n}", sh(f"{loud}; echo {n} > {n}.txt")) for n in range(4)), verify=loud, setup=loud
    )
    assert (done.code, len(done.run.tasks)) == (0, 4)


@pytest.mark.req("SWM-01")
@pytest.mark.soak
def test_two_batches_on_one_repository_at_once(bench: Bench) -> None:
    commit_files(bench.repo, {f"f{n}.txt": f"{n}\n" for n in range(20)})
    before = fingerprint(bench.repo)
    file = str(
        bench.tickets(
            *(task(f"t{n}", sub(str(n), "x", f"f{n}.txt"), verify="true") for n in range(4)), verify="true"
        )
    )
    words = ("swarm", file, "--runtime", "local", "--output", "json", "--into")
    both = [bench.start(*words, f"swarm/{name}") for name in ("left", "right")]
    ended = [bench.wait(process) for process in both]
    for done in ended:
        assert (done.code, set(done.statuses.values())) == (0, {"merged"}), done
    for name in ("left", "right"):
        assert len(bench.commits(f"swarm/{name}")) == 4
        assert [tree_files(bench.repo, f"swarm/{name}")[f"f{n}.txt"] for n in range(4)] == ["x"] * 4
    bench.assert_tidy(before)


@pytest.mark.soak
def test_two_batches_onto_one_branch_at_once_lose_nothing(bench: Bench) -> None:
    before = fingerprint(bench.repo)
    results: list[Any] = []

    def batch(name: str) -> None:
        file = bench.place / f"{name}.json"
        rows = [task(f"{name}{n}", put(f"{name}{n}.txt", "x\n")) for n in range(3)]
        file.write_text(json.dumps({"swarm": {"into": "swarm/x", "verify": "sleep 0.1"}, "task": rows}))
        results.append(bench.opendev("swarm", str(file), "--runtime", "local", "--output", "json"))

    threads = [threading.Thread(target=batch, args=(name,)) for name in ("l", "r")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    merged = [row.id for done in results for row in done.run.tasks if row.status == "merged"]
    assert sorted(bench.commits()) == sorted(f"Do {name}." for name in merged)
    assert {f"{name}.txt" for name in merged} <= set(tree_files(bench.repo, "swarm/x"))
    assert len(merged) == 6
    bench.assert_tidy(before)
