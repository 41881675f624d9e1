#!/usr/bin/env python3
"""Measures the passes of edit_file (N-13): what share of imperfect edits they carry out, and how many they put in a wrong place.

    bench/edits.py [--edits 2400] [--seed 1] [--json FILE]

Real files of Python's standard library; from each, spans of 3 to 12 lines that occur once. The text to replace is spoiled in one
of the ways models spoil it, the new text is the same with one line added. An edit is *right* when that line stands directly
behind the span, every byte outside of the span is as before, and the lines of the span are the same but for white space; any
other change of the file is a *wrong place*. Kinds marked * differ in content: mode locate should refuse them, and mode apply
writes the model's own content at the place.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opendev.core.errors import OpenDevError
from opendev.tools.edit.canonical import folded_line
from opendev.tools.edit.chain import chain, edit
from opendev.tools.edit.passes import Replacer

MARK = "opendev_measured_line()"
MAX_BYTES = 60_000
Spoil = Callable[[list[str], random.Random], list[str]]


def _exact(lines: list[str], _: random.Random) -> list[str]:
    return lines


def _trailing_space(lines: list[str], rng: random.Random) -> list[str]:
    return [line + " " * rng.randint(1, 3) if line.strip() else line for line in lines]


def _dedented(lines: list[str], _: random.Random) -> list[str]:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines] if margin else ["  " + line for line in lines]


def _half_indented(lines: list[str], _: random.Random) -> list[str]:
    return [" " * ((len(line) - len(line.lstrip())) // 2) + line.lstrip() for line in lines]


def _tabs(lines: list[str], _: random.Random) -> list[str]:
    return ["\t" * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in lines]


def _inner_space(lines: list[str], _: random.Random) -> list[str]:
    return [
        line[: len(line) - len(line.lstrip())] + line.lstrip().replace(" = ", "  =  ").replace(", ", ",  ")
        for line in lines
    ]


def _escaped(lines: list[str], _: random.Random) -> list[str]:
    return [line.replace('"', '\\"').replace("'", "\\'") for line in lines]


def _typographic(lines: list[str], _: random.Random) -> list[str]:
    return [line.replace("'", "\u2019").replace('"', "\u201d").replace(" - ", " \u2013 ") for line in lines]


def _numbered(lines: list[str], rng: random.Random) -> list[str]:
    start = rng.randint(1, 900)
    return [f"{start + n:6d}\t{line}" for n, line in enumerate(lines)]


def _blank_edges(lines: list[str], _: random.Random) -> list[str]:
    return ["", *lines, ""]


def _blank_inside(lines: list[str], rng: random.Random) -> list[str]:
    at = rng.randint(1, len(lines) - 1)
    return [*lines[:at], "", *lines[at:]]


def _cut_line(lines: list[str], _: random.Random) -> list[str]:
    return [lines[0].lstrip()[2:], *lines[1:]]


def _wrong_word(lines: list[str], rng: random.Random) -> list[str]:
    at = rng.randint(1, len(lines) - 2)
    return [*lines[:at], lines[at] + "_x", *lines[at + 1 :]]


def _invented_middle(lines: list[str], _: random.Random) -> list[str]:
    return [lines[0], "        value = compute_it(all, of, it)", lines[-1]]


def _swapped(lines: list[str], rng: random.Random) -> list[str]:
    at = rng.randint(1, len(lines) - 2)
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


SAME: dict[str, Spoil] = {
    "exact": _exact,
    "trailing space": _trailing_space,
    "indentation removed": _dedented,
    "indentation halved": _half_indented,
    "tabs for spaces": _tabs,
    "spaces inside lines": _inner_space,
    "escaped quotes": _escaped,
    "typographic signs": _typographic,
    "copied line numbers": _numbered,
    "blank lines at the edges": _blank_edges,
    "blank line inside": _blank_inside,
    "starts inside a line": _cut_line,
}
OTHER: dict[str, Spoil] = {
    "one word wrong": _wrong_word,
    "middle invented": _invented_middle,
    "two lines swapped": _swapped,
}


@dataclass(frozen=True)
class Case:
    """One edit: the file's text, the span (lines, end exclusive), what is asked for."""

    kind: str
    path: str
    raw: str
    start: int
    end: int
    old: str
    new: str


def corpus() -> list[Path]:
    """Files of the standard library that are plain ASCII-compatible text of a usual size."""
    folder = Path(json.__file__).resolve().parent.parent
    return [
        path
        for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py"))
        if 4_000 < path.stat().st_size < MAX_BYTES
        and "site-packages" not in path.parts
        and "test" not in path.parts
    ]


def make_cases(count: int, rng: random.Random) -> list[Case]:
    """``count`` cases, the same number of each kind; those a spoiling would not change are drawn again."""
    kinds = {**SAME, **OTHER}
    files = corpus()
    texts = {path: path.read_text(encoding="utf-8", errors="surrogateescape") for path in files}
    cases: list[Case] = []
    while len(cases) < count:
        kind = list(kinds)[len(cases) % len(kinds)]
        path = rng.choice(files)
        if case := _case(kind, kinds[kind], path, texts[path], rng):
            cases.append(case)
    return cases


def _case(kind: str, spoil: Spoil, path: Path, raw: str, rng: random.Random) -> Case | None:
    lines = raw.split("\n")
    size = rng.randint(4, 12)
    if len(lines) < size + 2:
        return None
    start = rng.randrange(len(lines) - size - 1)
    span = lines[start : start + size]
    if not span[0].strip() or not span[-1].strip() or raw.count("\n".join(span)) != 1 or MARK in raw:
        return None
    old = spoil(list(span), rng)
    if kind != "exact" and old == span:
        return None
    margin = span[-1][: len(span[-1]) - len(span[-1].lstrip())]
    new = spoil([*span, margin + MARK], rng) if spoil in SAME.values() else [*old, margin + MARK]
    if spoil is _numbered:  # the numbers go on where those of ``old`` end
        first = int(old[0].split("\t")[0])
        new = [f"{first + n:6d}\t{line}" for n, line in enumerate([*span, margin + MARK])]
    return Case(kind, path.name, raw, start, start + size, "\n".join(old), "\n".join(new))


def judge(case: Case, passes: tuple[Replacer, ...]) -> str:
    """``right``, ``refused`` or ``wrong``."""
    try:
        text = edit(case.raw, case.old, case.new, path=case.path, passes=passes).text
    except OpenDevError:
        return "refused"
    before, after = case.raw.split("\n"), text.split("\n")
    marks = [n for n, line in enumerate(after) if MARK in line]
    tail = len(before) - case.end
    if (
        len(marks) != 1
        or after[: case.start] != before[: case.start]
        or after[len(after) - tail :] != before[case.end :]
    ):
        return "wrong"
    region = [folded_line(line) for line in after[case.start : len(after) - tail] if MARK not in line]
    wanted = before[case.start : case.end]
    if case.kind in OTHER:  # the place is right; the model's own content is written
        return "right"
    return (
        "right" if [x for x in region if x] == [y for line in wanted if (y := folded_line(line))] else "wrong"
    )


def measure(cases: Sequence[Case]) -> dict[str, dict[str, Counter[str]]]:
    """Per set of passes and kind of spoiling: how many were right, refused, wrong."""
    sets: dict[str, tuple[Replacer, ...]] = {
        "1 pass": chain()[:1],
        "2 passes": chain()[:2],
        "9, locate": chain("locate"),
        "9, apply": chain("apply"),
    }
    found: dict[str, dict[str, Counter[str]]] = {name: defaultdict(Counter) for name in sets}
    for name, passes in sets.items():
        for case in cases:
            found[name][case.kind][judge(case, passes)] += 1
    return found


def table(found: dict[str, dict[str, Counter[str]]]) -> str:
    """Markdown: share carried out rightly, and in brackets the number put in a wrong place."""
    rows = ["| Spoiled by | edits | " + " | ".join(found) + " |", "|---|---|" + "---|" * len(found)]
    kinds = [*SAME, *OTHER]
    groups = {kind: [kind] for kind in kinds}
    groups["**all with equal content, spoiled**"] = [kind for kind in SAME if kind != "exact"]
    groups["**all that differ in content**"] = list(OTHER)
    groups["**all**"] = kinds
    for label, members in groups.items():
        cells: list[str] = []
        for counts in found.values():
            total = sum((counts[kind] for kind in members), Counter[str]())
            share = total["right"] / max(1, sum(total.values()))
            cells.append(f"{share:.1%} ({total['wrong']})")
        mark = " *" if label in OTHER else ""
        edits = sum(sum(next(iter(found.values()))[kind].values()) for kind in members)
        rows.append(f"| {label}{mark} | {edits} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> int:
    """Measure and print; 1 when mode locate put an edit in a wrong place."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=2_400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    started = time.monotonic()
    cases = make_cases(given.edits, random.Random(given.seed))  # noqa: S311 - a sample, not a secret
    found = measure(cases)
    sys.stdout.write(
        f"{table(found)}\n\n{len(cases)} edits, seed {given.seed}, {time.monotonic() - started:.0f} s\n"
    )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return int(any(counts["wrong"] for counts in found["9, locate"].values()))


if __name__ == "__main__":
    sys.exit(main())
