"""Which MCP servers there are: the user's ``mcp.json``, and a project's ``.mcp.json`` as far as the user agreed (MCP-09)."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field, ValidationError, model_validator

from ...core.chat import canonical
from ...core.errors import ErrorKind, OpenDevError
from ...core.model import Frozen, JsonObject
from ...store.atomic import Lock, write_atomic
from ...store.consent import agreed

USER_FILE, PROJECT_FILE = "mcp.json", ".mcp.json"
MAX_BYTES = 1_000_000
MAX_SERVERS = 100
MAX_SCRIPT_BYTES = 50_000_000
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TRANSPORTS = {"streamable-http": "http", "streamable_http": "http", "streamableHttp": "http"}


class Oauth(Frozen):
    """What a server's own answers do not tell about a login to it. ``issuer`` is whom the secret may be sent to; ``port`` of the
    address on this machine that the browser is sent back to, 0 for any."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str = ""
    client_secret: str = Field(default="", repr=False)
    issuer: str = ""
    client_metadata_url: str = ""
    port: int = Field(default=0, ge=0, le=65_535)

    @model_validator(mode="after")
    def _complete(self) -> "Oauth":
        if self.client_secret and not (self.client_id and self.issuer):
            raise ValueError("a `client_secret` needs its `client_id`, and the `issuer` it may be sent to")
        if self.grant == "client_credentials" and not self.client_secret:
            raise ValueError("the grant `client_credentials` needs a `client_secret`")
        url = self.client_metadata_url
        if url and not (url.startswith("https://") and url.removeprefix("https://").strip("/").count("/")):
            raise ValueError("`client_metadata_url` is no https address of a document")
        return self


class McpServer(Frozen):
    """One server: ``command`` with ``args`` and ``env``, or a ``url`` with ``headers``. ``timeout`` in ms, of start and of calls."""

    name: str = Field(min_length=1, max_length=100)
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    oauth: Oauth = Field(default_factory=Oauth)
    enabled: bool = True
    auto_start: bool = True
    timeout: int = Field(default=30_000, ge=100, le=3_600_000)
    cwd: str = ""  # the project; set by the loader
    home: str = ""  # the state root, where logins are kept; set by the loader

    @property
    def timeout_s(self) -> float:
        """``timeout`` in seconds."""
        return self.timeout / 1000

    @property
    def what(self) -> str:
        """What would run, or where it is, for people; without the values of headers and variables."""
        return self.url or " ".join([self.command, *self.args])

    @model_validator(mode="after")
    def _complete(self) -> "McpServer":
        if self.transport == "stdio" and not self.command:
            raise ValueError("it has no `command` (and no `url`)")
        if self.transport != "stdio" and not self.url.startswith(("http://", "https://", "${")):
            raise ValueError("its `url` is no http or https address")
        if self.transport == "stdio" and self.oauth != Oauth():
            raise ValueError("`oauth` is for servers with a `url`")
        return self


class Entry(Frozen):
    """A server as it stands in a file. ``key`` and ``digest`` are what a consent to it names."""

    server: McpServer
    scope: Literal["user", "project"]
    trusted: bool
    key: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class McpConfig:
    """All entries by name (a trusted project entry in place of the user's), and a sentence for each that cannot be used."""

    entries: tuple[Entry, ...] = ()
    refused: tuple[str, ...] = ()

    def find(self, name: str) -> Entry | None:
        """The entry of this name; a trusted one before one that is not."""
        found = [entry for entry in self.entries if entry.server.name == name]
        return next((entry for entry in found if entry.trusted), found[0] if found else None)


def load_mcp(home: Path, project: Path, more: Mapping[str, JsonObject] | None = None) -> McpConfig:
    """Both files, and ``more`` of the user's settings (CFG-11), over which mcp.json goes.

    What comes with the project and was not agreed to is listed as not trusted, and never started. Blocking.
    """
    refused: list[str] = []
    consent = agreed(home)
    entries: list[Entry] = []
    for path, scope in ((home / USER_FILE, "user"), (project / PROJECT_FILE, "project")):
        try:
            servers = {**(more or {} if scope == "user" else {}), **_servers(path)}
        except OpenDevError as error:
            refused.append(error.info.sentence())
            continue
        for name, body in list(servers.items())[:MAX_SERVERS]:
            key = f"{path.resolve()}#{name}"
            digest = _digest(body, project)
            try:
                server = read_server(name, body, str(project), path).model_copy(update={"home": str(home)})
            except OpenDevError as error:
                refused.append(error.info.sentence())
                continue
            trusted = scope == "user" or (bool(digest) and consent.get(key) == digest)
            entries.append(
                Entry.model_validate(
                    {"server": server, "scope": scope, "trusted": trusted, "key": key, "digest": digest}
                )
            )
    over = {e.server.name for e in entries if e.scope == "project" and e.trusted}
    kept = [e for e in entries if not (e.scope == "user" and e.server.name in over)]
    return McpConfig(tuple(kept), tuple(refused))


def _digest(body: Any, project: Path) -> str:
    """SHA-256 of the entry and of every file of the project that its command line names: a changed script is asked about again
    (T16). Empty, which nobody can agree to, when such a file cannot be read whole."""
    whole = hashlib.sha256(canonical(body).encode("utf-8", "surrogatepass"))
    entry = cast("JsonObject", body) if isinstance(body, dict) else {}
    given = entry.get("args")
    words = [entry.get("command"), *(cast("list[Any]", given) if isinstance(given, list) else [])]
    names = {
        piece
        for word in words
        if isinstance(word, str) and "\0" not in word
        for piece in (word, *word.split("="))
    }
    for name in sorted(names - {""}):
        path = project / name
        try:
            if path.is_file() and path.resolve().is_relative_to(project.resolve()):
                with path.open("rb") as file:
                    data = file.read(MAX_SCRIPT_BYTES + 1)
                if len(data) > MAX_SCRIPT_BYTES:
                    return ""
                whole.update(f"\0{name}\0{hashlib.sha256(data).hexdigest()}".encode("utf-8", "surrogatepass"))
        except OSError:
            return ""
    return whole.hexdigest()


def usable(config: McpConfig, env: Mapping[str, str]) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """The servers an agent gets, their variables filled in from ``env``, and a sentence for each that is left out for a reason."""
    ready: list[McpServer] = []
    notes = list(config.refused)
    for entry in config.entries:
        server = entry.server
        if not entry.trusted:
            notes.append(
                f"The MCP server {server.name} comes with the project and is not trusted: it was not started. "
                f"It would run: {server.what[:200]}. To agree: opendev mcp enable {server.name}."
            )
        elif server.enabled and server.auto_start:
            try:
                ready.append(expand(server, env))
            except OpenDevError as error:
                notes.append(error.info.sentence())
    return tuple(ready), tuple(notes)


def expand(server: McpServer, env: Mapping[str, str]) -> McpServer:
    """``${NAME}`` and ``${NAME:-default}`` filled in. Raises ``OpenDevError`` (config) naming a variable that is not set."""

    def fill(text: str) -> str:
        def value(found: re.Match[str]) -> str:
            known: str | None = env[found[1]] if found[1] in env else found[2]
            if known is None:
                raise OpenDevError(
                    ErrorKind.CONFIG,
                    f"The MCP server {server.name} needs the variable {found[1]}, which is not set.",
                    "Set it, or write ${NAME:-default} in its entry.",
                )
            return known

        return _VARIABLE.sub(value, text)

    return server.model_copy(
        update={
            "command": fill(server.command),
            "args": tuple(fill(item) for item in server.args),
            "env": {name: fill(item) for name, item in server.env.items()},
            "url": fill(server.url),
            "headers": {name: fill(item) for name, item in server.headers.items()},
            "oauth": server.oauth.model_copy(
                update={
                    "client_id": fill(server.oauth.client_id),
                    "client_secret": fill(server.oauth.client_secret),
                }
            ),
        }
    )


def read_server(name: str, body: Any, cwd: str, path: Path) -> McpServer:
    """One entry. Raises ``OpenDevError`` (config) saying what is wrong with it."""
    if not isinstance(body, dict):
        raise _wrong(path, name, "it is no JSON object")
    given = dict(cast("JsonObject", body))
    transport = given.pop("type", None) or given.get("transport") or ("http" if given.get("url") else "stdio")
    given["transport"] = _TRANSPORTS.get(str(transport), transport)
    try:
        return McpServer.model_validate({**given, "name": name, "cwd": cwd, "home": ""})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        why = first["msg"].removeprefix("Value error, ")
        raise _wrong(path, name, f"`{where}`: {why}" if where else why) from error


def change_user_file(home: Path, change: Callable[[JsonObject], None]) -> None:
    """Let ``change`` edit the servers of the user's file: read, changed and written under one lock (D05). Blocking.

    Raises:
        OpenDevError: config when the file is no such file (it is left as it is), infra when it cannot be written.
    """
    path = home / USER_FILE
    with Lock(home / f"{USER_FILE}.lock"):
        whole = _whole(path)
        servers = _of(path, whole)
        change(servers)
        whole["mcpServers"] = servers
        write_atomic(path, (json.dumps(whole, indent=2) + "\n").encode())


def _servers(path: Path) -> JsonObject:
    return _of(path, _whole(path))


def _of(path: Path, whole: JsonObject) -> JsonObject:
    servers: Any = whole.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise OpenDevError(ErrorKind.CONFIG, f"`mcpServers` in {path} is no JSON object.", "Mend the file.")
    return cast("JsonObject", servers)


def _whole(path: Path) -> JsonObject:
    try:
        # Without waiting: a link of a hostile project may lead to a pipe or a terminal.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ValueError("it is no regular file")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
        value: Any = json.loads(data)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"The MCP file {path} cannot be read: {error}.", "Mend or remove it."
        ) from error
    if not isinstance(value, dict):
        raise OpenDevError(
            ErrorKind.CONFIG, f"The MCP file {path} holds no JSON object.", "Mend or remove it."
        )
    return cast("JsonObject", value)


def _wrong(path: Path, name: str, why: str) -> OpenDevError:
    return OpenDevError(ErrorKind.CONFIG, f"The MCP server {name[:80]} in {path} cannot be used: {why}.")
