"""Layers of the gate: one more never loosens, their order does not matter, one that breaks refuses (SAF-01, SAF-09)."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.scope import Scope
from opendev.policy import gate as gate_module
from opendev.policy.gate import Gate
from opendev.policy.verdict import Verdict, join
from opendev.tools.run_command import TOOL

VERDICT = st.builds(
    Verdict, decision=st.sampled_from(["allow", "ask", "deny"]), layer=st.sampled_from("abc"), rule=st.sampled_from(["", "r"]), edit=st.booleans()
)  # fmt: skip
LAYERS = ("_paths", "_command", "_hands_over", "_by_rules", "_by_level")
FAILURES = (
    *(RuntimeError("x"), RecursionError("x"), NotImplementedError("x"), KeyError("x"), IndexError("x"), ValueError("x")),
    *(UnicodeDecodeError("utf-8", b"x", 0, 1, "x"), TypeError("x"), AttributeError("x"), OSError("x"), re.error("x")),
    *(ZeroDivisionError("x"), OverflowError("x"), AssertionError("x"), NameError("x")),
)  # fmt: skip


@pytest.mark.req("SAF-01")
@given(st.lists(VERDICT, max_size=6), VERDICT, st.randoms(use_true_random=False))
def test_one_more_layer_never_loosens_and_their_order_does_not_matter(
    verdicts: list[Verdict], more: Verdict, random: Any
) -> None:
    both = [*verdicts, more]
    random.shuffle(both)
    assert join(both).rank == max(join(verdicts).rank, more.rank)


def judged(root: Path, level: ApprovalLevel, *, by_hook: bool) -> Verdict:
    found = Gate(level=level, mode=Mode.NORMAL, root=root, scope=Scope())
    return found.judge(TOOL, TOOL.args.model_validate({"command": "ls"}), by_hook=by_hook)


@pytest.mark.req("SAF-09")
@pytest.mark.parametrize("layer", [*LAYERS, "judge_mode"])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_layer_that_breaks_refuses_whatever_it_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, failure: Exception
) -> None:
    def broken(*_: object) -> Verdict:
        raise failure

    monkeypatch.setattr(gate_module if layer == "judge_mode" else Gate, layer, broken)
    for by_hook in (False, True):
        verdict = judged(tmp_path, ApprovalLevel.AUTO, by_hook=by_hook)
        assert (verdict.decision, verdict.layer) == ("deny", "gate")


@pytest.mark.req("SAF-01")
@settings(max_examples=60, deadline=None)
@given(extra=st.lists(VERDICT, max_size=3), level=st.sampled_from(list(ApprovalLevel)))
def test_the_gate_is_never_looser_than_one_of_its_layers(extra: list[Verdict], level: ApprovalLevel) -> None:
    root = Path("/nowhere")
    plain = judged(root, level, by_hook=False)

    def other(*_: object) -> Verdict:
        return join(extra)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "_by_rules", other)  # any other layer, whatever it says
        assert judged(root, level, by_hook=False).rank == max(plain.rank, *(v.rank for v in extra), 0)
