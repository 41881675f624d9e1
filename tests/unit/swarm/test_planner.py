"""The planner's own part: the block in an answer, the spec, and how an agent that failed is told."""

import pytest
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentReport, AgentStatus
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.swarm.plan import PlanView
from opendev.swarm.planner import draft_plan, planner_spec, read_block
from opendev.tools.catalog import BUILTIN

VIEW = PlanView(base="0" * 40, into="swarm/x", concurrency=1, waves=(), tickets=0)


@pytest.mark.parametrize(
    ("answer", "block"),
    [
        ("```toml\na = 1\n```", "a = 1\n"),
        ("Text.\n```toml  \na = 1\n```  \nMore.", "a = 1\n"),
        ('````toml\na = """\n```\ncode\n```\n"""\n````', 'a = """\n```\ncode\n```\n"""\n'),
        ("~~~toml\na = 1\n~~~", "a = 1\n"),
        ("```python\nx\n```\n```toml\na = 1\n```", "a = 1\n"),
    ],
)
def test_the_one_block_is_read(answer: str, block: str) -> None:
    assert read_block(answer) == block


@pytest.mark.parametrize(
    "answer", ["", "a = 1", "```\na = 1\n```", "```toml\na = 1", "```toml\na\n```\n" * 2]
)
def test_none_or_two_blocks_are_refused(answer: str) -> None:
    with pytest.raises(OpenDevError, match="instead of one") as caught:
        read_block(answer)
    assert caught.value.info.kind is ErrorKind.USAGE


def test_the_planner_reads_only() -> None:
    spec = planner_spec(builtin_specs()["Planner"], 7)
    tools = {tool.name: tool for tool in BUILTIN}
    assert spec.tools
    assert all(tools[name].read_only for name in spec.tools)
    assert (spec.writes, spec.max_iterations, "\n" in spec.prompt) == (False, 7, True)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (AgentStatus.BUDGET, None, ErrorKind.BUDGET),
        (AgentStatus.CANCELLED, None, ErrorKind.CANCELLED),
        (AgentStatus.EMPTY, None, ErrorKind.TOOL),
        (AgentStatus.FAILED, ErrorKind.AUTH, ErrorKind.AUTH),
        (AgentStatus.UNANSWERED, ErrorKind.DENIED, ErrorKind.UNANSWERED),
    ],
)
async def test_an_agent_that_ended_otherwise_is_told_by_its_cause(
    status: AgentStatus, error: ErrorKind | None, kind: ErrorKind
) -> None:
    asked: list[str] = []

    async def ask(prompt: str) -> AgentReport:
        asked.append(prompt)
        info = ErrorInfo(kind=error, message="why") if error else None
        return AgentReport(id="a", agent="Planner", status=status, error=info, text="```toml\na\n```")

    async def check(_text: str) -> PlanView:
        return VIEW

    with pytest.raises(OpenDevError) as caught:
        await draft_plan("goal", branch="main", specs=builtin_specs(), ask=ask, check=check)
    assert (caught.value.info.kind, len(asked)) == (kind, 1)
