#!/usr/bin/env python3
"""Our MCP client as the conformance suite wants one: connects to the address given last, lists the tools and calls each once.

    node node_modules/.bin/conformance client --scenario tools_call --command "python bench/mcp_conformance_client.py"

In a scenario about logins it takes the part of the person as well: it logs in as `opendev mcp login` does, with a browser that agrees to all.
"""

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opendev.cli.mcp_login import log_in
from opendev.core.errors import OpenDevError
from opendev.core.model import JsonObject
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.link import LinkState
from opendev.tools.mcp.manager import McpManager

VALUES: dict[str, Any] = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}
LOGINS = 3  # at most: a server may ask for more rights, but not for ever


def arguments(schema: JsonObject) -> JsonObject:
    """A value of the right type for each property."""
    return {name: VALUES.get(str(item.get("type")), "text") for name, item in schema["properties"].items()}


async def agree(url: str) -> None:
    """The person's browser: goes where it is sent, and back."""
    await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).close())  # noqa: S310 - the suite's own server


def oauth(url: str, scenario: str) -> JsonObject:
    """What a user would write under `oauth`: what the suite says, and the issuer, as the server names it."""
    if scenario == "auth/basic-cimd":
        return {"client_metadata_url": "https://conformance-test.local/client-metadata.json"}
    given: JsonObject = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "client_secret" not in given or "idp_issuer" in given:
        return {}
    parts = urlsplit(url)
    described = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    with urllib.request.urlopen(described) as page:  # noqa: S310 - the suite's own server
        issuer = json.load(page)["authorization_servers"][0]
    grant = "client_credentials" if "client-credentials" in scenario else "authorization_code"
    return {
        "grant": grant,
        "issuer": issuer,
        "client_id": given["client_id"],
        "client_secret": given["client_secret"],
    }


async def use(server: McpServer) -> LinkState:
    """Call every tool once, as an agent would; the server's state afterwards."""
    manager = McpManager([server], {}, lambda text: print(text, file=sys.stderr))
    manager.start()
    try:
        await manager.settled(server.timeout_s)
        link = manager.link("suite")
        schemas = {tool.name: tool.args.model_json_schema() for tool in manager.tools()}
        for (name, schema), remote in zip(
            schemas.items(), sorted(link.tools, key=lambda t: t.name), strict=True
        ):
            try:
                result = await link.call(remote.name, arguments(schema))
            except OpenDevError as error:
                print(error, file=sys.stderr)
                await asyncio.sleep(0.1)
                return link.status.state
            print(name, result.ok, result.text[:200])
        return link.status.state
    finally:
        await manager.close()


async def main(url: str, home: str) -> int:
    """0 when the server was there and every call was answered."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    server = McpServer.model_validate(
        {"name": "suite", "transport": "http", "url": url, "home": home, "oauth": oauth(url, scenario)}
    )
    for _ in range(LOGINS):
        state = await use(server)
        if state is not LinkState.NEEDS_LOGIN:
            return 0 if state is LinkState.READY else 1
        print(await log_in(server, {}, agree))
    return 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(main(sys.argv[-1], str(Path(place)))))
