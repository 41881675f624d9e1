"""Names of MCP tools (X08, M05)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.tools.mcp.names import qualified, server_of

PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SERVER = "awslabs.aws-iac-mcp-server"
TOOLS = ["get_cloudformation_pre_deploy_validation_instructions", "get_cloudformation_pre_deploy_validation_instructionz",
         "a.b", "a_b", "résumé/x", ""]  # fmt: skip


@pytest.mark.req("MCP-06")
def test_odd_and_long_names_are_legal_distinct_and_the_same_every_time() -> None:
    names = [qualified(SERVER, tool) for tool in TOOLS]
    assert all(PATTERN.fullmatch(name) for name in names)
    assert len(set(names)) == len(TOOLS)
    assert names == [qualified(SERVER, tool) for tool in TOOLS]


@pytest.mark.req("MCP-06")
def test_a_plain_name_stays_readable() -> None:
    assert qualified("github", "create_issue") == "mcp__github__create_issue"
    assert server_of("mcp__github__create_issue") == "github"
    assert server_of("read_file") == ""


PIECE = st.text(st.sampled_from("ab_-.é"), max_size=12) | st.text(max_size=80)


@given(st.tuples(PIECE, PIECE), st.tuples(PIECE, PIECE))
def test_two_tools_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    first, second = qualified(*one), qualified(*other)
    assert PATTERN.fullmatch(first)
    assert PATTERN.fullmatch(second)
    assert (first == second) == (one == other)
