"""An MCP server that wants a login, and the authorization server beside it: small, over plain HTTP, with everything asked of it noted."""

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOOL: dict[str, Any] = {
    "name": "who",
    "description": "Who is logged in.",
    "inputSchema": {"type": "object", "properties": {}},
}


@dataclass
class Desk:
    """What the server does, and what was asked of it."""

    url: str = ""
    good_for: int = 1_000  # tool calls a token is good for
    renews: bool = True
    forgets: bool = False  # every token it gives
    wrong_issuer: bool = False
    scope: str = ""  # what a call needs beside a token
    registered: int = 0
    authorized: list[dict[str, str]] = field(default_factory=list)
    granted: list[dict[str, str]] = field(default_factory=list)  # token requests
    valid: dict[str, str] = field(default_factory=dict)  # token -> its scope
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: int = 0
    bad_tokens: int = 0


class _Handler(http.server.BaseHTTPRequestHandler):
    desk: Desk

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        desk = self.desk
        if parts.path == "/.well-known/oauth-protected-resource/mcp":
            self._json({"resource": f"{desk.url}/mcp", "authorization_servers": [f"{desk.url}/login"]})
        elif parts.path == "/.well-known/oauth-authorization-server/login":
            base = f"{desk.url}/login"
            self._json(
                {
                    "issuer": base,
                    "authorization_endpoint": f"{base}/ask",
                    "token_endpoint": f"{base}/give",
                    "registration_endpoint": f"{base}/meet",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": True,
                }
            )
        elif parts.path == "/login/ask":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            desk.authorized.append(asked)
            code = f"code-{len(desk.authorized)}"
            desk.codes[code] = asked
            issuer = "http://evil.example" if desk.wrong_issuer else f"{desk.url}/login"
            back = urlencode({"code": code, "state": asked["state"], "iss": issuer})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._json({}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/mcp":
            self._mcp(json.loads(body))
        elif self.path == "/login/meet":
            self.desk.registered += 1
            asked = json.loads(body)
            self._json(
                {
                    **asked,
                    "client_id": f"client-{self.desk.registered}",
                    "token_endpoint_auth_method": "none",
                },
                201,
            )
        elif self.path == "/login/give":
            self._give({name: values[0] for name, values in parse_qs(body.decode()).items()})
        else:
            self._json({}, 404)

    def _give(self, asked: dict[str, str]) -> None:
        desk = self.desk
        desk.granted.append({**asked, "authorization": self.headers.get("Authorization", "")})
        grant, scope = asked["grant_type"], ""
        if grant == "refresh_token" and not desk.renews:
            return self._json({"error": "invalid_grant"}, 400)
        if grant == "authorization_code":
            before = desk.codes.pop(asked["code"])
            digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
            if before["code_challenge"] != base64.urlsafe_b64encode(digest).decode().rstrip("="):
                return self._json({"error": "invalid_grant"}, 400)
            scope = before.get("scope", "")
        token = f"secret-token-{len(desk.granted)}"
        desk.valid = {} if desk.forgets else {token: scope}
        answer: dict[str, Any] = {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": 3_600,
            "refresh_token": f"secret-renewal-{len(desk.granted)}",
        }
        return self._json(answer)

    def _mcp(self, message: dict[str, Any]) -> None:
        desk = self.desk
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if message.get("method") == "tools/call":
            desk.calls += 1
            if desk.calls > desk.good_for:
                desk.valid, desk.calls = {}, 0
        if token not in desk.valid:
            desk.bad_tokens += bool(token)
            where = f'Bearer resource_metadata="{desk.url}/.well-known/oauth-protected-resource/mcp"'
            return self._json({}, 401, {"WWW-Authenticate": where})
        if message.get("method") == "tools/call" and not set(desk.scope.split()) <= set(
            desk.valid[token].split()
        ):
            return self._json(
                {}, 403, {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{desk.scope}"'}
            )
        if "id" not in message:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "locked", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "you"}]},
        }
        found = results.get(message["method"])
        if found is None:
            return self._json(
                {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
            )
        return self._json({"jsonrpc": "2.0", "id": message["id"], "result": found})

    def _json(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def locked_server(desk: Desk) -> Generator[Desk]:
    """Serve on a free port of loopback; ``desk.url`` says where."""
    handler = type("Handler", (_Handler,), {"desk": desk})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    desk.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield desk
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
