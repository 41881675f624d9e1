"""A tiny MCP server without the SDK, for what a real one would not do: noise, floods, silence, bad schemas, late death.

Arguments: ``noise`` prints text between messages, ``flood`` writes 20 MB to stderr, ``hang`` never answers, ``deaf`` ignores the end of
its input and SIGTERM and has a child, ``schemas`` lists bad tools beside a good one, ``many`` lists 100 tools.
"""

import json
import signal
import subprocess
import sys
import time
from typing import cast

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMAS = [
    {"type": "string"},
    {},
    None,
    {"type": "object", "properties": {"f": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"enum": ["a"]}}},
    {"type": "object", "properties": {"x": {"enum": ["A"], "type": "null"}}},
    {"anyOf": [{"type": "object"}]},
    {"$ref": "#"},
    {"type": "object", "properties": {"self": {"$ref": "#"}}},
]


def tools() -> list[object]:
    good = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    found: list[object] = [{"name": "echo", "description": "Say it again.", "inputSchema": good}]
    if MODE == "schemas":
        found += [{"name": f"bad_{n}", "inputSchema": schema} for n, schema in enumerate(SCHEMAS)]
        found += [{"description": "it has no name"}, "no object"]
    if MODE == "many":
        found += [{"name": f"tool_{n}", "description": "word " * 60, "inputSchema": good} for n in range(99)]
    return found


def answer(message: dict[str, object]) -> object:
    match message["method"]:
        case "initialize":
            info = {"name": "plain", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": tools()}
        case "tools/call":
            params = message["params"]
            text = cast("dict[str, dict[str, str]]", params)["arguments"].get("text", "")
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


def main() -> None:
    out = sys.stdout.buffer
    if MODE == "hang":
        sys.stderr.write("waiting for a licence\n")
        sys.stderr.flush()
        signal.pause()
    if MODE == "flood":
        sys.stderr.write(("x" * 199 + "\n") * 100_000)
        sys.stderr.flush()
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    for line in sys.stdin:
        message = json.loads(line)
        if MODE == "noise":
            out.write(b"Starting server...\n\xe2\x9c\x93 ready\n[1,2]\n\xff\xfe\n\r\n")
        if "id" in message:
            result = answer(message)
            reply = {"jsonrpc": "2.0", "id": message["id"]}
            refused = {"error": {"code": -32601, "message": "unknown method"}}
            out.write(
                json.dumps({**reply, **(refused if result is None else {"result": result})}).encode() + b"\n"
            )
            out.flush()
    while MODE == "deaf":
        time.sleep(60)  # noqa: TID251 - a process of its own


main()
