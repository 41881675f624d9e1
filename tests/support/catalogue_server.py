"""A catalogue of models on loopback, in the form of models.dev."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CATALOGUE: dict[str, Any] = {
    "acme": {
        "id": "acme",
        "models": {
            "big": {
                "limit": {"context": 500_000, "output": 8_000},
                "cost": {"input": 1, "output": 2, "cache_read": 0.5},
                "modalities": {"input": ["text", "image"]},
                "reasoning": True,
            },
            "odd": {"limit": [1], "cost": {"input": "free", "output": -1}, "modalities": {"input": 7}},
        },
    },
    "other": {"id": "other", "models": {"small": {"limit": {"context": 9_000}}}},
}


class CatalogueServer:
    """Answers every GET with ``body`` (None: an HTTP 500) once ``gate`` is open; ``asked`` counts the requests."""

    def __init__(self) -> None:
        self.whole = json.dumps(CATALOGUE).encode()
        self.body: bytes | None = self.whole
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked += 1
                owner.gate.wait(20)
                self.send_response(200 if owner.body is not None else 500)
                self.end_headers()
                self.wfile.write(owner.body or b"")

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on the test's output."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/api.json"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)
