"""Reads one command's pipe in a thread of its own: into the bounded buffer and the bounded log, never into memory whole."""

import os
import select
import threading
import time
from typing import Protocol

from .output import OutputBuffer

CHUNK = 65_536
POLL_MS = 100  # K23
LIVE_CHARS = 4_000  # live text that is waiting to be shown; older text is dropped, the result is not touched


class Log(Protocol):
    """Where raw output is kept."""

    def write(self, data: bytes, /) -> object: ...

    def close(self) -> None: ...


class Pump:
    """Owns the read end of a pipe, or a terminal's master end, until end of file or ``stop``. A thread, so that a flood never blocks the mailbox,
    and so that a server left running with ``&`` can go on writing after the call has returned."""

    def __init__(self, fd: int, buffer: OutputBuffer, log: Log | None, log_cap: int) -> None:
        """``fd`` and ``log`` are closed by the thread; ``log_cap`` is in bytes."""
        self.buffer = buffer
        self.last_output = time.monotonic()
        self.ended = threading.Event()
        self._fd, self._log, self._room = fd, log, log_cap
        self._live = ""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._frozen = False
        self._thread = threading.Thread(target=self._run, name="command-output", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Close the pipe; returns when the thread has ended (within 100 ms)."""
        self._stopping.set()
        self._thread.join()

    def take_live(self) -> str:
        """The cleaned text since the last call, at most its last 4,000 characters."""
        with self._lock:
            live, self._live = self._live, ""
        return live

    def freeze(self) -> tuple[str, int]:
        """End the result here: its text and the number of omitted bytes. Later output goes to the log only."""
        with self._lock:
            if not self._frozen:
                self._live = (self._live + self.buffer.finish())[-LIVE_CHARS:]
                self._frozen = True
            return self.buffer.text(), self.buffer.omitted_bytes

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        try:
            while not self._stopping.is_set():
                if not poller.poll(POLL_MS):
                    continue
                try:
                    data = os.read(self._fd, CHUNK)
                except OSError:  # a terminal whose last holder is gone
                    return
                if not data:
                    return
                self._save(data)
                self._take(data)
        finally:
            os.close(self._fd)
            if self._log is not None:
                self._log.close()
            self.ended.set()

    def _take(self, data: bytes) -> None:
        with self._lock:
            self.last_output = time.monotonic()
            if not self._frozen:
                self._live = (self._live + self.buffer.feed(data))[-LIVE_CHARS:]

    def _save(self, data: bytes) -> None:
        if self._log is None or self._room <= 0:
            return
        try:
            self._log.write(data[: self._room])
            self._room -= len(data)
            if self._room <= 0:
                self._log.write(b"\n[the log ends here, at its size limit]\n")
        except OSError:  # a full disk must not end the command; the buffer still has head and tail
            self._room = 0
