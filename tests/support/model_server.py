"""A scripted model server on loopback: OpenAI chat completions and Anthropic messages, whole and streamed (MOD-11).

    with ModelServer([call("read_file", {"file_path": "a.py"}), text("done")]) as server:
        env = server.env()              # OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY
        ...
        assert len(server.seen) == 2    # every request: path, body, the exact bytes, headers, what was billed

``script`` is a list of replies (handed out in order of arrival; one too many gets a plain HTTP 400 that says so), or a
function ``(Seen) -> Reply``. ``sessions`` maps a marker to a list: a request whose messages hold the marker gets the next
reply of that list, so that several agents can run at once. Stand-alone:
``python tests/support/model_server.py --script FILE --port 0`` prints ``{"url": …}`` and runs until SIGTERM or stdin's end.
FILE is JSON: a list of replies, or ``{"replies": […], "sessions": {marker: […]}, "repeat": true}``.
"""

import argparse
import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, cast

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.model_dialects import (
    Billed,
    Call,
    Dialect,
    Json,
    Reply,
    Seen,
    anthropic_events,
    anthropic_whole,
    bill,
    call,
    calls,
    error_body,
    failing,
    openai_events,
    openai_whole,
    reply_from_json,
    text,
)

__all__ = ["Billed", "Call", "ModelServer", "Reply", "Seen", "call", "calls", "failing", "from_file", "text"]

Script = Sequence[Reply] | Callable[[Seen], Reply]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: "ModelServer"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news here."""


class ModelServer:
    """The server, in threads of this process. ``seen`` and ``log`` (JSONL) hold every request."""

    def __init__(
        self,
        script: Script = (),
        *,
        sessions: Mapping[str, Sequence[Reply]] | None = None,
        repeat: bool = False,
        latency_s: float = 0.0,
        log: Path | None = None,
        port: int = 0,
    ) -> None:
        self.script = script
        self.sessions = {marker: list(replies) for marker, replies in (sessions or {}).items()}
        self.repeat = repeat  # the last reply of a list again and again
        self.latency_s = latency_s
        self.log = log
        self.seen: list[Seen] = []
        self.peak = 0  # most requests in the air at once
        self._open = 0
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def env(self) -> dict[str, str]:
        """Variables that point OpenDev at this server, in both dialects."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "test-key",
        }

    def billed(self) -> Billed:
        """The sum of all that was billed."""
        rows = [seen.billed for seen in self.seen if seen.billed]
        return Billed(sum(r.input for r in rows), sum(r.output for r in rows), sum(r.cached for r in rows))

    def enter(self, path: str, raw: bytes, headers: dict[str, str]) -> tuple[Seen, Reply]:
        """Note a request and choose its reply."""
        body = cast("Json", json.loads(raw or b"{}"))
        dialect: Dialect = "anthropic" if "/messages" in path else "openai"
        with self._lock:
            seen = Seen(len(self.seen) + 1, path, dialect, body, raw, headers)
            self.seen.append(seen)
            self._open += 1
            self.peak = max(self.peak, self._open)
            reply = None if callable(self.script) and not self._marker(seen) else self._next(seen)
        if reply is None:
            reply = cast("Callable[[Seen], Reply]", self.script)(seen)
        seen.status = reply.status
        return seen, reply

    def note(self, seen: Seen, billed: Billed | None) -> None:
        """Note what is billed and write the log line, before the client can see the answer's end."""
        with self._lock:
            seen.billed = billed
            if self.log is None:
                return
            row: Json = {"n": seen.number, "path": seen.path, "status": seen.status, "body": seen.body}
            row["billed"] = None if billed is None else vars(billed)
            with self.log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")

    def leave(self) -> None:
        """A request is done with."""
        with self._lock:
            self._open -= 1

    def _marker(self, seen: Seen) -> str:
        return next((marker for marker in self.sessions if seen.says(marker)), "")

    def _next(self, seen: Seen) -> Reply:
        marker = self._marker(seen)
        replies = self.sessions[marker] if marker else cast("Sequence[Reply]", self.script)
        at = self._used.get(marker, 0)
        self._used[marker] = at + 1
        if at >= len(replies) and not (self.repeat and replies):
            return failing(400, f"the script is used up after {len(replies)} replies", kind="script_used_up")
        return replies[min(at, len(replies) - 1)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._json(200, {}, {"object": "list", "data": [{"id": "test", "object": "model"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        owner = self.server.owner
        seen, reply = owner.enter(self.path, raw, {k.lower(): v for k, v in self.headers.items()})
        try:
            owner.stopping.wait(owner.latency_s if reply.latency_s is None else reply.latency_s)
            self._answer(seen, reply)
        finally:
            owner.leave()

    def _answer(self, seen: Seen, reply: Reply) -> None:
        counting = seen.path.endswith("/count_tokens")
        broken = any(at is not None for at in (reply.fail_after, reply.drop_after, reply.eof_after))
        billed = bill(seen, reply)
        self.server.owner.note(seen, None if counting or broken or reply.status != 200 else billed)
        if counting:
            self._json(200, {}, {"input_tokens": max(1, len(seen.raw) // 4)})
        elif reply.status != 200:
            self._json(reply.status, reply.headers, error_body(seen.dialect, reply))
        elif seen.stream:
            self._events(seen, reply, billed)
        elif broken:
            self._reset()
        else:
            whole = openai_whole if seen.dialect == "openai" else anthropic_whole
            self._json(200, reply.headers, whole(seen, reply, billed))

    def _events(self, seen: Seen, reply: Reply, billed: Billed) -> None:
        """Write the stream, up to its end or its fault."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        stream = openai_events if seen.dialect == "openai" else anthropic_events
        for number, (name, data) in enumerate(stream(seen, reply, billed)):
            if not self._fault(seen, reply, number):
                return
            self._event(name, json.dumps(data))
            if reply.pause_s:
                self.server.owner.stopping.wait(reply.pause_s)
        if seen.dialect == "openai":
            self._event("", "[DONE]")
        self._chunk(b"")

    def _fault(self, seen: Seen, reply: Reply, number: int) -> bool:
        """Do what the reply wants done before event ``number``; False ends the stream."""
        if number == reply.stall_after:
            self.wfile.flush()
            self.server.owner.stopping.wait(reply.stall_s)
        if number == reply.drop_after:
            self.wfile.flush()
            self._reset()
            return False
        if number == reply.fail_after:
            body = error_body(seen.dialect, reply)
            self._event("error" if seen.dialect == "anthropic" else "", json.dumps(body))
        if number in (reply.fail_after, reply.eof_after):
            self._chunk(b"")
            return False
        return True

    def _event(self, name: str, data: str) -> None:
        head = f"event: {name}\n" if name else ""
        self._chunk(f"{head}data: {data}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _json(self, status: int, headers: Mapping[str, str], body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


def from_file(path: Path, *, port: int = 0, log: Path | None = None, latency_s: float = 0.0) -> ModelServer:
    """A server that plays a script file."""
    loaded: Any = json.loads(path.read_text(encoding="utf-8"))
    plan = cast("Json", loaded if isinstance(loaded, dict) else {"replies": loaded})
    sessions = cast("dict[str, list[Json]]", plan.get("sessions", {}))
    return ModelServer(
        [reply_from_json(item) for item in plan.get("replies", [])],
        sessions={marker: [reply_from_json(item) for item in rows] for marker, rows in sessions.items()},
        repeat=bool(plan.get("repeat")),
        latency_s=latency_s,
        log=log,
        port=port,
    )


def main() -> None:
    """Run until standard input ends (or a signal comes)."""
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    args = parser.parse_args()
    with from_file(args.script, port=args.port, log=args.log, latency_s=args.latency) as server:
        sys.stdout.write(json.dumps({"url": server.url, "env": server.env()}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
