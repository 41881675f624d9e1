"""The reference servers from npm, where they are installed (`npm install -g @modelcontextprotocol/server-everything` and the like)."""

import shutil
from pathlib import Path

import pytest
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.manager import McpManager
from opendev.tools.shell.reap import family

MARK = {"OPENDEV_RUN": "test-mcp-npm"}
SERVERS: list[tuple[str, tuple[str, ...], str, dict[str, str], str]] = [
    ("mcp-server-everything", ("stdio",), "echo", {"message": "hello"}, "hello"),
    ("mcp-server-filesystem", ("{}",), "list_directory", {"path": "{}"}, "here.txt"),
    ("mcp-server-memory", (), "read_graph", {}, "entities"),
]


@pytest.mark.slow
@pytest.mark.req("MCP-10")
@pytest.mark.parametrize(
    ("program", "args", "tool", "arguments", "answer"), SERVERS, ids=[s[0] for s in SERVERS]
)
async def test_a_reference_server(
    tmp_path: Path, program: str, args: tuple[str, ...], tool: str, arguments: dict[str, str], answer: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / "here.txt").write_text("x")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "MEMORY_FILE_PATH": str(tmp_path / "memory.json"), **MARK}
    place = str(tmp_path)
    server = McpServer(
        name="ref", command=str(shutil.which(program)), args=tuple(a.format(place) for a in args), cwd=place
    )
    manager = McpManager([server], env)
    manager.start()
    try:
        assert await manager.settled(30) == ()
        given = {name: value.format(place) for name, value in arguments.items()}
        result = await manager.link("ref").call(tool, given)
        assert result.ok, result.text
        assert answer in result.text
        assert len(manager.tools()) == len(manager.link("ref").tools)
    finally:
        await manager.close()
    assert family(marker=MARK) == ()
