"""A hook never loosens: whatever hooks say, nothing runs that the gate refuses, and an allow lifts only its own kind of question (HOK-08)."""

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.hooks import Hook, HookEvent, HookGroup, Hooks, HookSet
from opendev.core.model import JsonObject
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.policy.hooks import Ended, Planned, answered, interpret, questioned
from opendev.policy.verdict import Verdict, join
from opendev.tools.hooks import INPUT, HookEngine
from opendev.tools.run_command import TOOL
from opendev.tools.schema import parse_args

PRE = HookEvent.PRE_TOOL_USE
COMMANDS = st.sampled_from(
    [
        "ls",
        "make",
        "git push --force",
        "sudo id",
        "rm -rf /",
        "echo $(sudo id)",
        "cat ../../x",
        "if",
        "curl x | sh",
    ]
)
VERDICTS = st.builds(
    Verdict,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    layer=st.sampled_from(["level", "rules", "confirm", "paths", "floor", "gate", "secrets", "mode"]),
    edit=st.booleans(),
)
ANSWER = st.fixed_dictionaries(
    {},
    optional={
        "permissionDecision": st.sampled_from(["allow", "deny", "ask", "approve", "x"]),
        "decision": st.sampled_from(["approve", "block", "deny", "allow"]),
        "updatedInput": st.fixed_dictionaries({"command": COMMANDS}) | st.just("x"),
        "tool_input": st.fixed_dictionaries({"command": COMMANDS}),
        "continue": st.booleans(),
    },
)
ENDS = st.sampled_from([0, 0, 0, 0, 1, 2, 127, -9, None])


class Scripted(HookEngine):
    """Hooks whose ends are given: ``commands`` are numbers into ``ends``."""

    def __init__(self, ends: list[Ended], foreign: list[bool]) -> None:
        groups = {
            whose: tuple(
                HookGroup(hooks=(Hook(command=str(n)),)) for n, x in enumerate(foreign) if x is whose
            )
            for whose in (False, True)
        }
        hooks = HookSet(own=Hooks(PreToolUse=groups[False]), projects=Hooks(PreToolUse=groups[True]))
        super().__init__(hooks, session="s", env={}, emit=lambda _: None)
        self.ends, self.asked = ends, list[tuple[int, str]]()

    async def _run(self, event: HookEvent, plan: Planned, facts: JsonObject, cwd: str) -> Ended:
        self.asked.append((int(plan.hook.command), facts[INPUT]["command"]))
        return self.ends[int(plan.hook.command)]


@given(st.lists(VERDICTS, max_size=6), st.booleans(), st.sampled_from(["", "sure?"]))
def test_on_any_verdicts_the_word_of_hooks_only_answers_the_level_and_the_rules(
    verdicts: list[Verdict], allowed: bool, question: str
) -> None:
    said = questioned(join([answered(v) for v in verdicts] if allowed else verdicts), question)
    must = [v for v in verdicts if v.decision == "deny" or v.layer not in ("level", "rules") or v.edit]
    assert said.rank >= join(must).rank
    if not allowed:
        assert said.rank >= join(verdicts).rank
    if question:
        assert said.decision != "allow"


@settings(max_examples=150)
@given(
    st.lists(st.tuples(ENDS, ANSWER, st.booleans()), max_size=5),
    COMMANDS,
    st.sampled_from(ApprovalLevel),
)
def test_what_runs_passes_the_gate_and_every_hook(
    made: list[tuple[int | None, Any, bool]], command: str, level: ApprovalLevel
) -> None:
    ends = [Ended(code, json.dumps(answer)) for code, answer, _ in made]
    engine = Scripted(ends, [foreign for _, _, foreign in made])
    answer = asyncio.run(engine.ask(PRE, "run_command", {INPUT: {"command": command}}, "/"))
    if answer.refused:
        return
    assert all(code not in (2, 127, -9, None) for code, _, _ in made)
    final = answer.input or {"command": command}
    gate = Gate(level=level, mode=Mode.NORMAL, root=Path("/work/proj"), scope=Scope())
    args = parse_args(TOOL, final)
    plain, said = gate.judge(TOOL, args), gate.judge(TOOL, args, by_hook=answer.allowed)
    assert said.rank == plain.rank or (plain.decision == "ask" and plain.layer in ("level", "rules"))
    saw = {n for n, seen in engine.asked if seen == final["command"]}
    unseen = set(range(len(made))) - saw
    assert len(unseen) <= (answer.input is not None)  # every hook but the one that wrote it saw what runs
    if answer.allowed:
        assert any(interpret(PRE, ends[n]).allowed and not made[n][2] for n in saw | unseen)


def test_a_guard_before_a_change_is_asked_about_the_change() -> None:
    change = Ended(0, '{"updatedInput": {"command": "make deploy"}}')
    engine = Scripted([Ended(0), change, Ended(0)], [False, False, True])
    answer = asyncio.run(engine.ask(PRE, "x", {INPUT: {"command": "make"}}, "/"))
    assert answer.input == {"command": "make deploy"}
    assert engine.asked == [(0, "make"), (1, "make"), (0, "make deploy"), (2, "make deploy")]
