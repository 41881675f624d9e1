"""Messages for a running agent: thread-safe, bounded, and closed in one step with the decision to end (AGT-06, LOOP-19)."""

import queue
import threading

INBOX_SIZE = 10


class Inbox:
    """A queue of user messages. Nothing that was accepted is lost: ``close`` refuses while something waits."""

    def __init__(self) -> None:
        self._queue: queue.Queue[str] = queue.Queue(maxsize=INBOX_SIZE)
        self._lock = threading.Lock()
        self._closed = False

    def put(self, text: str) -> bool:
        """False when the queue is full, the agent has ended, or the text is blank: the sender is told (C-15)."""
        with self._lock:
            if self._closed or not text.strip() or self._queue.full():
                return False
            self._queue.put_nowait(text)
            return True

    def drain(self) -> tuple[str, ...]:
        """Take everything that waits, oldest first."""
        with self._lock:
            return self._take()

    @property
    def waiting(self) -> bool:
        """Whether a message waits."""
        return not self._queue.empty()

    def try_close(self) -> bool:
        """Close for good unless something waits; True when closed."""
        with self._lock:
            self._closed = self._closed or self._queue.empty()
            return self._closed

    def close(self) -> tuple[str, ...]:
        """Close in any case; what still waited."""
        with self._lock:
            self._closed = True
            return self._take()

    def _take(self) -> tuple[str, ...]:
        taken: list[str] = []
        while not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return tuple(taken)
