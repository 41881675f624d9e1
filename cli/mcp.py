"""`opendev mcp list|add|remove|enable|disable|test|tools|login|logout|serve`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import ErrorKind, OpenDevError
from ..core.exits import Exit
from ..core.model import JsonObject
from ..store.consent import agree
from ..tools.mcp.config import (
    USER_FILE,
    Entry,
    McpConfig,
    McpServer,
    change_user_file,
    expand,
    load_mcp,
    read_server,
)
from ..tools.mcp.link import LinkState, LinkStatus
from ..tools.mcp.logins import LoginStore
from ..tools.mcp.manager import McpManager
from .project import Project, open_project

app = typer.Typer(help="MCP servers. Example: opendev mcp list", no_args_is_help=True)
_NAME = Annotated[str, typer.Argument(help="a server of `opendev mcp list`")]


class Transport(StrEnum):
    """How a server with an address is spoken to."""

    HTTP = "http"
    SSE = "sse"


@app.command(name="list")
def list_servers(context: typer.Context) -> None:
    """List the servers; nothing is started. What cannot be used, and why, on standard error. Example: opendev mcp list"""
    config = _config(open_project(context.obj))
    for entry in config.entries:
        server = entry.server
        typer.echo(
            f"{server.name:20} {entry.scope:8} {server.transport:6} {state_of(entry):12} {server.what}"
        )
    for text in config.refused:
        typer.echo(text, err=True)


@app.command(context_settings={"allow_interspersed_args": False})
def add(  # noqa: PLR0913 - the command line is fixed
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="how it is called here")],
    command: Annotated[
        list[str] | None, typer.Argument(help="the program and its arguments; none with --url")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for its environment; ${VAR} is filled in")
    ] = None,
    url: Annotated[str, typer.Option(help="the address of a server that runs already")] = "",
    transport: Annotated[Transport, typer.Option(help="of a server with --url")] = Transport.HTTP,
    header: Annotated[list[str] | None, typer.Option(help="NAME=VALUE sent with each request")] = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout", help="milliseconds, of the start and of a call")
    ] = 30_000,
) -> None:
    """Add a server to your own file; options come before NAME. Example: opendev mcp add files npx -y @modelcontextprotocol/server-filesystem ."""
    project = open_project(context.obj)
    if bool(command) == bool(url):
        raise OpenDevError(
            ErrorKind.USAGE, "Give a command or --url, one of the two.", "See opendev mcp add --help."
        )
    body: JsonObject = {"timeout": timeout_ms}
    if command:
        body |= {"command": command[0], "args": command[1:], "env": _pairs(env, "--env")}
    else:
        body |= {"url": url, "transport": transport.value, "headers": _pairs(header, "--header")}
    read_server(name, body, str(project.path), project.layout.home / USER_FILE)

    def change(servers: JsonObject) -> None:
        if name in servers:
            raise OpenDevError(
                ErrorKind.USAGE, f"There is a server {name} already.", f"First: opendev mcp remove {name}."
            )
        servers[name] = body

    change_user_file(project.layout.home, change)
    typer.echo(f"Added {name}. To try it: opendev mcp test {name}")


@app.command()
def remove(context: typer.Context, name: _NAME) -> None:
    """Remove a server from your own file. Example: opendev mcp remove files"""
    project = open_project(context.obj)

    def change(servers: JsonObject) -> None:
        if servers.pop(name, None) is None:
            raise OpenDevError(
                ErrorKind.USAGE,
                f"There is no server {name} in {project.layout.home / USER_FILE}.",
                "A server of the project is in its .mcp.json; `opendev mcp disable` withdraws your consent to it.",
            )

    change_user_file(project.layout.home, change)
    typer.echo(f"Removed {name}.")


@app.command()
def enable(context: typer.Context, name: _NAME) -> None:
    """Let a server start; for one of the project this is the consent to exactly what is shown. Example: opendev mcp enable files"""
    typer.echo(switch_server(open_project(context.obj), name, on=True))


@app.command()
def disable(context: typer.Context, name: _NAME) -> None:
    """Let a server not start any more. Example: opendev mcp disable files"""
    typer.echo(switch_server(open_project(context.obj), name, on=False))


@app.command(name="test")
def probe(context: typer.Context, name: _NAME) -> None:
    """Start a server, say how it is, and end it. Example: opendev mcp test files"""

    async def look(manager: McpManager) -> LinkStatus:
        return manager.status()[0]

    found = asyncio.run(with_server(open_project(context.obj), name, look))
    typer.echo(
        f"{found.name}: {found.state.value}, {found.tools} tools{f'. {found.why}' if found.why else ''}"
    )
    raise typer.Exit(0 if found.state is LinkState.READY else int(Exit.INFRA))


@app.command(name="tools")
def list_tools(context: typer.Context, name: _NAME) -> None:
    """List the tools of a server, by the names that agents use. Example: opendev mcp tools files"""

    async def look(manager: McpManager) -> list[str]:
        status = manager.status()[0]
        if status.state is not LinkState.READY:
            raise OpenDevError(ErrorKind.INFRA, f"The MCP server {name}: {status.state.value}. {status.why}")
        return [f"{tool.name}  {tool.description}" for tool in manager.tools()]

    for line in asyncio.run(with_server(open_project(context.obj), name, look)):
        typer.echo(line)


@app.command()
def login(context: typer.Context, name: _NAME) -> None:
    """Log in to a server with an address, in your browser; later runs use that login. Example: opendev mcp login tracker"""
    from .mcp_login import browser, log_in

    project = open_project(context.obj)
    server = _startable(project, name)
    _with_address(server)
    if not sys.stdin.isatty() or project.environment.get("CI"):
        raise OpenDevError(
            ErrorKind.UNANSWERED,
            f"A login to {name} needs a person at a terminal.",
            f"Run opendev mcp login {name} there once, or put a token into `headers` of its entry.",
        )
    typer.echo(
        asyncio.run(log_in(server, project.environment.child_env(), browser(project.environment.child_env())))
    )


@app.command()
def logout(context: typer.Context, name: _NAME) -> None:
    """Forget the login to a server on this machine. Example: opendev mcp logout tracker"""
    server = _startable(open_project(context.obj), name)
    _with_address(server)
    known = LoginStore(Path(server.home), server.url).forget()
    typer.echo(f"Forgot the login to {name}." if known else f"There was no login to {name}.")


@app.command()
def serve(context: typer.Context) -> None:
    """Offer swarm runs, their status and report to another agent, over standard input and output. Example: opendev mcp serve"""
    from .mcp_serve import serve_swarm

    asyncio.run(serve_swarm(open_project(context.obj)))


def _config(project: Project) -> McpConfig:
    return load_mcp(project.layout.home, project.path, project.config.mcp_servers)


def find_entry(project: Project, name: str) -> Entry:
    """A server of the files. Raises ``OpenDevError`` (usage) when there is none of that name."""
    config = _config(project)
    entry = config.find(name)
    if entry is None:
        known = ", ".join(entry.server.name for entry in config.entries) or "none"
        raise OpenDevError(ErrorKind.USAGE, f"There is no MCP server {name}.", f"Known: {known}.")
    return entry


def state_of(entry: Entry) -> str:
    """Whether it would be started."""
    if not entry.trusted:
        return "not trusted"
    return "enabled" if entry.server.enabled else "disabled"


def switch_server(project: Project, name: str, *, on: bool) -> str:
    """Let a server start or not; for one of the project this gives or withdraws consent. The sentence that says so."""
    entry = find_entry(project, name)
    if entry.scope == "project":
        agree(project.layout.home, entry.key, entry.digest if on else None)
        verb = "You agreed to" if on else "You withdrew the consent to"
        return f"{verb} the project's server {name}: {entry.server.what}"

    def change(servers: JsonObject) -> None:
        servers[name] = {**(servers.get(name) or project.config.mcp_servers[name]), "enabled": on}

    change_user_file(project.layout.home, change)
    return f"{'Enabled' if on else 'Disabled'} {name}."


def _with_address(server: McpServer) -> None:
    if server.transport == "stdio":
        raise OpenDevError(
            ErrorKind.USAGE,
            f"{server.name} is a program on this machine: there is no login to it.",
            "What it needs to know stands in `env` of its entry.",
        )


def _startable(project: Project, name: str) -> McpServer:
    """The server, its variables filled in. Raises ``OpenDevError`` when it may not start."""
    entry = find_entry(project, name)
    if not entry.trusted:
        raise OpenDevError(
            ErrorKind.DENIED,
            f"The MCP server {name} comes with the project and is not trusted. It would run: {entry.server.what}",
            f"To agree: opendev mcp enable {name}.",
        )
    return expand(entry.server, dict(project.environment.items()))


def _echo(text: str) -> None:
    typer.echo(text, err=True)


async def with_server(
    project: Project,
    name: str,
    look: Callable[[McpManager], Awaitable[Any]],
    tell: Callable[[str], None] = _echo,
) -> Any:
    """What ``look`` makes of a started server; it is ended before this returns. Raises ``OpenDevError`` when it may not start."""
    server = _startable(project, name)
    manager = McpManager([server], project.environment.child_env(), tell)
    manager.start()
    try:
        await manager.settled(server.timeout_s + 1)
        return await look(manager)
    finally:
        await manager.close()


def _pairs(values: list[str] | None, option: str) -> dict[str, str]:
    pairs = [value.partition("=") for value in values or ()]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise OpenDevError(ErrorKind.USAGE, f"{option} {wrong[0]} is not NAME=VALUE.")
    return {name: value for name, _, value in pairs}
