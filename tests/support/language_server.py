"""A scripted language server for tests, run as a program: ``python language_server.py FAULT``; it logs what it is told."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

FAULT, LOG = sys.argv[1:3]
_out = threading.Lock()


def write(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _out:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def read() -> dict[str, Any]:
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        size = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(size)) if size else sys.exit(0)


def note(text: str) -> None:
    with Path(LOG).open("a") as file:
        file.write(text + "\n")


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def publish(uri: str, version: int | None, message: str, severity: int = 1) -> None:
    params = {"uri": uri, "diagnostics": [{"range": span(0, 0, 1), "severity": severity, "message": message}]}
    write(
        method="textDocument/publishDiagnostics",
        params=params | ({} if version is None else {"version": version}),
    )


def later(seconds: float, work: Any, *args: Any) -> None:
    timer = threading.Timer(seconds, work, args)
    timer.daemon = True
    timer.start()


def opened(document: dict[str, Any]) -> None:
    uri, version = document["uri"], document["version"]
    note(f"opened {uri.rpartition('/')[2]} {version}")
    if FAULT == "stale":
        publish(uri, version - 1, "an old error")
        later(0.3, publish, uri, version, f"error of version {version}")
    elif FAULT == "silent":
        publish(uri, version - 1, "an old error")
    elif FAULT == "many":
        for number in range(3):  # the last of a burst counts
            publish(uri, version, f"burst {number}")
    elif FAULT == "unversioned":
        publish(uri, None, "of the text that was told last")
    elif FAULT == "warning":
        publish(uri, version, "a warning", 2)


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        note(f"initialize {params['processId']}")
        return {"capabilities": {"positionEncoding": "utf-16"}}
    if FAULT == "nonsense":
        write(id="x", method="workspace/configuration", params=7)
        write(method="textDocument/publishDiagnostics", params=[1])
        write(method="textDocument/publishDiagnostics", params={"uri": 5, "diagnostics": 1})
        return [{"name": "name", "range": 5}]
    if method == "textDocument/documentSymbol":
        whole = {"range": span(0, 9, 17), "selectionRange": span(0, 10, 14)}
        return [{"name": "name", "kind": 13, **whole}]
    if method == "textDocument/references":
        note(f"references {params['position']}")
        return (
            [] if FAULT == "indexing" else [{"uri": params["textDocument"]["uri"], "range": span(0, 10, 14)}]
        )
    return None


def main() -> None:
    note("start")
    if FAULT == "crash":
        sys.stderr.write("no licence for this machine\n")
        sys.exit(1)
    if FAULT == "noise":
        sys.stdout.buffer.write(b"Starting server...\n\xe2\x9c\x93 ready\n\xff\xfe\n\r\n")
    while True:
        got = read()
        if "id" in got and "method" in got:
            reply(got)
        else:
            told(got.get("method", ""), got.get("params") or {})


def told(method: str, params: dict[str, Any]) -> None:
    if method in ("textDocument/didOpen", "textDocument/didChange"):
        opened(params["textDocument"])
    elif method == "initialized" and FAULT == "indexing":
        write(method="$/progress", params={"token": "t", "value": {"kind": "begin", "title": "indexing"}})
        later(0.3, lambda: write(method="$/progress", params={"token": "other", "value": {"kind": "end"}}))
    elif method == "exit":
        note("exit")
        sys.exit(0)


def reply(got: dict[str, Any]) -> None:
    method = got["method"]
    first = Path(LOG).read_text().count("start") == 1
    if FAULT == "dies-once" and method == "textDocument/references" and first:
        sys.exit(1)
    if FAULT == "slow" and method == "initialize":
        threading.Event().wait(0.5)
    write(id=got["id"], result=answer(method, got.get("params") or {}))


if __name__ == "__main__":
    main()
