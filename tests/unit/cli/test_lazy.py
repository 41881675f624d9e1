"""Sub-commands are imported when they are called, and say the same about themselves before and after (CLI start-up)."""

import subprocess
import sys

import pytest
from opendev.cli.lazy import ROOMS, room

HEAVY = {
    "litellm", "openai", "ray", "git", "mcp", "httpx", "yaml",
    "opendev.swarm", "opendev.actors", "opendev.agents", "opendev.tools", "opendev.ui",
}  # fmt: skip


@pytest.mark.parametrize("name", ROOMS)
def test_the_help_in_the_list_is_the_room_s_own(name: str) -> None:
    assert room(name).help == ROOMS[name]


def test_the_root_command_imports_no_room() -> None:
    program = "import sys, opendev.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
