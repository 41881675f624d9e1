"""A stand-alone process that searches text where no ``rg`` is installed: it can be killed, a thread cannot (FIL-14).

Started as ``python -I search_worker.py``; one JSON object on standard input
``{root, path, pattern, glob, context, limit}``; one JSON object a line on standard output:
``{"path", "line", "text", "match"}`` or ``{"error"}``. It uses the ``python_ripgrep`` wheel, and Python's own ``re`` for
patterns that the wheel cannot read (look-around, back-references) or where the wheel is missing.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JUNK = {".git", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
_FILE_BYTES = 5_000_000
_LINE = re.compile(r"^(\d+)([:-])(.*)$", re.DOTALL)
Row = dict[str, Any]


def search(job: dict[str, Any]) -> Iterator[Row]:
    """Matching lines (and lines around them), file by file in the order of paths."""
    try:
        re.compile(job["pattern"])
    except re.error as error:
        valid_here = str(error)
    else:
        valid_here = ""
    try:
        yield from _by_wheel(job)
    except ImportError:
        if valid_here:
            yield {"error": f"regex parse error: {valid_here}"}
        else:
            yield from _by_python(job, _walk(job))
    except ValueError as error:  # the wheel's complaint about the pattern
        if valid_here:
            yield {"error": str(error)}
        else:
            yield from _by_python(job, _ripgrep_files(job))


def _globs(job: dict[str, Any]) -> list[str]:
    return ["!.git", "!.env", *([job["glob"]] if job["glob"] else [])]


def _by_wheel(job: dict[str, Any]) -> Iterator[Row]:
    import python_ripgrep

    found = python_ripgrep.search(
        [job["pattern"]],
        paths=[job["path"]],
        globs=_globs(job),
        heading=True,
        line_number=True,
        before_context=job["context"] or None,
        after_context=job["context"] or None,
        max_count=job["limit"],
    )
    one_file = Path(job["path"]).is_file()  # then the wheel writes no heading
    for block in sorted(found):
        name, _, body = (job["path"], "", block) if one_file else block.partition("\n")
        for line in body.split("\n"):
            parsed = _LINE.match(line)
            if parsed:
                yield {"path": name, "line": int(parsed[1]), "text": parsed[3], "match": parsed[2] == ":"}


def _ripgrep_files(job: dict[str, Any]) -> list[str]:
    import python_ripgrep

    return sorted(python_ripgrep.files(["*"], paths=[job["path"]], globs=_globs(job)))


def _walk(job: dict[str, Any]) -> Iterator[str]:
    if Path(job["path"]).is_file():
        yield job["path"]
        return
    for folder, folders, files in os.walk(job["path"]):
        folders[:] = sorted(name for name in folders if name not in JUNK)
        for name in sorted(files):
            path = Path(folder, name)
            wanted = not job["glob"] or path.match(job["glob"].removeprefix("**/"))
            if wanted and name not in (".git", ".env") and not path.is_symlink():
                yield str(path)


def _by_python(job: dict[str, Any], paths: Any) -> Iterator[Row]:
    wanted = re.compile(job["pattern"])
    for path in paths:
        try:
            if Path(path).stat().st_size > _FILE_BYTES:
                continue
            data = Path(path).read_bytes()
        except OSError:
            continue
        if b"\0" in data[:8_000]:
            continue
        lines = data.decode("utf-8", "replace").split("\n")
        hits = [number for number, line in enumerate(lines) if wanted.search(line)][: job["limit"]]
        shown = {
            n
            for hit in hits
            for n in range(hit - job["context"], hit + job["context"] + 1)
            if 0 <= n < len(lines)
        }
        for number in sorted(shown):
            yield {
                "path": path,
                "line": number + 1,
                "text": lines[number].rstrip("\r"),
                "match": number in hits,
            }


def main() -> None:
    """Read the job, print the rows; stop after ``limit`` matches."""
    job = json.load(sys.stdin)
    left = job["limit"]
    for row in search(job):
        sys.stdout.write(json.dumps(row) + "\n")
        left -= bool(row.get("match"))
        if left <= 0:
            break


if __name__ == "__main__":
    main()
