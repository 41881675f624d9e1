"""Listing 10,000 sessions from the index, building the index again, and what one entry weighs (SES-06, N-25).

    bench/sessions.py [--sessions 10000] [--json FILE]

In a temporary state root; every session has its record, its transcript of two messages and its lock file, as `-p` leaves them. The
command is the installed `opendev`, with the start of its interpreter.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from opendev.core.chat import AssistantMessage, UserMessage
from opendev.core.session import SessionMeta
from opendev.store.layout import Layout
from opendev.store.records import TranscriptLine
from opendev.store.session_index import INDEX
from opendev.store.sessions import SessionStore

OPENDEV = Path(sys.executable).with_name("opendev")
REPEATS = 5


def fill(store: SessionStore, count: int) -> None:
    """Write the files of ``count`` sessions, without their index."""
    store.folder.mkdir(parents=True)
    for number in range(count):
        id = f"s{number:07d}"
        said = (UserMessage(content=f"Do thing {number}."), AssistantMessage(content="Done."))
        lines = (
            TranscriptLine(at="2026-01-01T00:00:00.000+00:00", message=message).to_json() for message in said
        )
        meta = SessionMeta(
            id=id,
            created_at="2026-01-01T00:00:00.000+00:00",
            updated_at=f"2026-01-01T00:00:00.{number % 1000:03d}+00:00",
            metadata={"title": f"Do thing {number} in a project with a long name"[:50], "message_count": 2},
        )
        (store.folder / f"{id}.json").write_text(meta.to_json())
        (store.folder / f"{id}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        (store.folder / f"{id}.lock").touch()


def seconds(call: Any, repeats: int = REPEATS) -> float:
    """The median time of a call."""
    taken: list[float] = []
    for _ in range(repeats):
        began = perf_counter()
        call()
        taken.append(perf_counter() - began)
    return round(statistics.median(taken), 4)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        project = place / "project"
        project.mkdir()
        store = SessionStore(Layout(place / "home"), project)
        fill(store, given.sessions)
        found: dict[str, Any] = {"sessions": given.sessions, "rebuild_s": seconds(store.entries, 1)}
        assert len(store.entries()) == given.sessions
        found["list_s"] = seconds(store.entries)
        found["bytes_per_entry"] = round((store.folder / INDEX).stat().st_size / given.sessions, 1)
        found["save_s"] = seconds(
            lambda: store.files("s0000001").update(lambda meta: meta or SessionMeta(id="x"))
        )
        env = {"OPENDEV_HOME": str(place / "home"), "PATH": "/usr/bin:/bin", "HOME": str(place)}
        words = [str(OPENDEV), "sessions", "list", "--json", "--limit"]

        def listed(folder: Path, limit: int) -> float:
            run = partial(subprocess.run, cwd=folder, env=env, check=True, capture_output=True)
            return seconds(lambda: run([*words, str(limit)]))

        empty = place / "empty"
        empty.mkdir()
        found["command_s"] = listed(project, 20)
        found["command_all_s"] = listed(project, given.sessions)
        found["command_of_none_s"] = listed(empty, 20)
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if given.json:
        given.json.write_text(text + "\n")
    return 0 if found["list_s"] < 0.3 else 1


if __name__ == "__main__":
    sys.exit(main())
