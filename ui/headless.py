"""JSON lines for scripts: one event a line, the report as the last line (``--output stream-json``)."""

import json
from typing import TextIO

from ..core.events import Event
from ..core.model import JsonObject
from ..core.ticket import RunReport


class JsonLines:
    """Writes events to ``stream``, each line at once and whole. After the reader has gone it is silent; the run goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._seq = 0
        self._at = ""
        self._gone = False
        self.lost: OSError | None = None  # why lines could not be written, unless the reader went away

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._seq = max(self._seq, event.seq)
        self._at = event.at or self._at
        self._write(event.to_json())

    def report(self, found: RunReport) -> None:
        """Write the report of a batch as the last line."""
        self.result(found.run_id, found.model_dump(mode="json", by_alias=True))

    def result(self, run: str, fields: JsonObject) -> None:
        """Write a report: the fields of an event, with the report's own beside them."""
        head: JsonObject = {"schema": 1, "seq": self._seq + 1, "at": self._at, "run": run, "agent": ""}
        self._write(json.dumps(head | {"kind": "report"} | fields))

    def _write(self, line: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            self._gone = True
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                self.lost = error
