"""What a verdict becomes: a person's changed call is judged again, refusals name their rule, decisions are told (APR-03, APR-07)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.chat import Question
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.events import Event, GateDecided
from opendev.core.model import Frozen, JsonObject
from opendev.core.permissions import Permissions, Rule, by_priority
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.tools.catalog import BUILTIN
from opendev.tools.permit import Permit
from support.tool_context import make_context

TOOLS = {tool.name: tool for tool in BUILTIN}


@dataclass
class Person:
    """Answers as told; ``made`` is what the call is changed to."""

    decision: str = "once"
    made: JsonObject | None = None
    seen: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.seen.append(request)
        return ApprovalAnswer.model_validate(
            {"decision": self.decision, "digest": request.digest, "arguments": self.made, "by": "me"}
        )

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        return None if questions else ()


async def decided(
    root: Path, person: Person, *rules: dict[str, Any], tool: str = "run_command", **args: Any
) -> tuple[Frozen | ErrorInfo, list[GateDecided]]:
    events: list[Event] = []
    made = by_priority(tuple(Rule.model_validate(one) for one in rules))
    gate = Gate(level=ApprovalLevel.SEMI_AUTO, mode=Mode.NORMAL, root=root, scope=Scope(), permissions=Permissions(rules=made))  # fmt: skip
    permit = Permit(gate=gate, asker=person, emit=events.append, clock=SystemClock(), agent="Coder")
    given = TOOLS[tool].args.model_validate(args)
    found = await permit.follow(permit.judge(TOOLS[tool], given), TOOLS[tool], given, make_context(root))
    return found, [event for event in events if isinstance(event, GateDecided)]


EDIT = {"rule_type": "prefix", "pattern": "npm publish", "action": "require_edit", "name": "look first"}
DENY = {"rule_type": "prefix", "pattern": "git push", "action": "auto_deny", "name": "no push"}


@pytest.mark.req("APR-03")
async def test_a_call_that_must_be_changed_runs_as_it_was_changed(tmp_path: Path) -> None:
    person = Person(made={"command": "npm publish --dry-run"})
    found, _ = await decided(tmp_path, person, EDIT, command="npm publish")
    assert getattr(found, "command", None) == "npm publish --dry-run"
    assert (person.seen[0].must_edit, person.seen[0].keep) == (True, "once")
    for made in (None, {"command": "npm publish", **_rest(person.seen[0])}):
        found, _ = await decided(tmp_path, Person(made=made), EDIT, command="npm publish")
        assert isinstance(found, ErrorInfo)
        assert (found.kind, "had to be changed" in found.message) == (ErrorKind.DENIED, True)


def _rest(request: ApprovalRequest) -> JsonObject:
    return {key: value for key, value in request.arguments.items() if key != "command"}


@pytest.mark.req("APR-03", "APR-04")
@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"command": "rm -rf /"}, "never run"),
        ({"command": "git push"}, "no push"),
        ({"command": 7, "wat": 1}, "wat"),
    ],
)
async def test_a_changed_call_is_judged_again(tmp_path: Path, made: JsonObject, says: str) -> None:
    found, told = await decided(tmp_path, Person(made=made), DENY, command="make")
    assert isinstance(found, ErrorInfo)
    assert says in found.message
    assert [event.decision for event in told][:1] == ["ask"]


@pytest.mark.req("APR-07", "ARC-03")
async def test_every_command_is_told_with_its_rule(tmp_path: Path) -> None:
    allow = {"rule_type": "prefix", "pattern": "make", "action": "auto_approve", "id": "m1"}
    _, told = await decided(tmp_path, Person(), allow, DENY, command="make all")
    assert [(e.decision, e.rule, e.subject) for e in told] == [("allow", "m1", "make all")]
    found, told = await decided(tmp_path, Person(), allow, DENY, command="make && git push")
    assert isinstance(found, ErrorInfo)
    assert "no push" in found.message
    assert [(e.decision, e.layer, e.rule, e.subject) for e in told] == [
        ("deny", "rules", "no push", "make && git push")
    ]
    _, told = await decided(tmp_path, Person(), tool="read_file", file_path="a.py")
    assert told == []
    _, told = await decided(tmp_path, Person("deny"), tool="write_file", file_path="a.py", content="password = 'hunter2hunter2'")  # fmt: skip
    assert [(e.decision, "a.py" in e.subject) for e in told] == [("ask", True)]
