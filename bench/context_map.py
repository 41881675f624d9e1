#!/usr/bin/env python3
"""Measures the repository map (N-20): its tokens against the source's, time of a first and a second build, of reading it.

    bench/context_map.py [ROOT ...] [--tokens 1500]

Without ROOT: this repository and public packages installed beside it. Tokens are estimated at four characters each.
"""

import argparse
import sysconfig
import tempfile
import time
from pathlib import Path

from opendev.context.repomap import build, load, render, source_files

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rich", "pydantic", "typer", "hypothesis", "litellm")
BUILD_S = 600.0


def row(root: Path, home: Path, tokens: int) -> str:
    """One line of the table."""
    chars = sum((root / path).stat().st_size for path in source_files(root))
    times: list[float] = []
    for _ in range(2):
        started = time.perf_counter()
        build(root, home, BUILD_S)
        times.append(time.perf_counter() - started)
    started = time.perf_counter()
    found = load(home, root)
    text = render(found, "Fix the parser.", tokens, root) if found else ""
    read = time.perf_counter() - started
    share = len(text) / chars
    return (
        f"| {root.name} | {found.total if found else 0:,} | {chars // 4:,} | {len(text) // 4:,} ({share:.2%}) "
        f"| {times[0]:.1f} s | {times[1]:.2f} s | {read * 1000:.0f} ms |"
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roots", nargs="*", type=Path)
    parser.add_argument("--tokens", type=int, default=1_500)
    options = parser.parse_args()
    site = Path(sysconfig.get_paths()["purelib"])
    roots = options.roots or [ROOT, *(site / name for name in PACKAGES if (site / name).is_dir())]
    print(
        "| repository | source files | source, tokens | map, tokens | first build | second build | read and render |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for root in roots:
            print(row(root.resolve(), Path(folder), options.tokens))


if __name__ == "__main__":
    main()
