"""A stand-alone process that reads a PDF: hostile files loop or eat memory, and a process can be ended and bounded (PDF-01).

Started as ``python -I pdf_worker.py``; one JSON object on standard input ``{path, first, last, chars, password}`` (pages
count from 1; last 0 = the last page); JSON lines on standard output: ``{"pages", "metadata"}``, then ``{"page", "text"}`` for
each page until ``chars`` are used up, or ``{"error", "kind"}``.
"""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any, cast

MEMORY_BYTES = 2_000_000_000
_METADATA = 500
Row = dict[str, Any]


def read(job: Row) -> Iterator[Row]:
    """The rows of one job."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(job["path"], strict=False)
        if reader.is_encrypted and not reader.decrypt(job["password"]):
            yield {"error": "it is encrypted", "kind": "encrypted"}
            return
        total = len(reader.pages)
        yield {"pages": total, "metadata": _metadata(reader.metadata)}
        left = job["chars"]
        for number in range(job["first"], min(job["last"] or total, total) + 1):
            text = _page_text(reader.pages[number - 1])
            yield {"page": number, "text": text[:left]}
            left -= len(text)
            if left <= 0:
                return
    except (PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, RecursionError,
            MemoryError, NotImplementedError) as error:  # fmt: skip
        yield {"error": f"{type(error).__name__}: {error}"[:300], "kind": "damaged"}


def _page_text(page: Any) -> str:
    """Lone surrogates of broken fonts cannot be written."""
    return str(page.extract_text()).encode("utf-8", "replace").decode("utf-8")


def _metadata(found: Any) -> dict[str, str]:
    named = {
        str(key).lstrip("/"): str(value)[:_METADATA]
        for key, value in cast("dict[Any, Any]", found or {}).items()
    }
    return {key: value for key, value in list(named.items())[:30] if value.strip()}


def main() -> None:
    """Bound the memory, answer one job."""
    logging.disable(logging.CRITICAL)  # the library warns of every flaw of a file
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for row in read(json.loads(sys.stdin.read())):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
