"""The history of decisions: private, bounded, readable (APR-07, ARC-05)."""

from pathlib import Path

import pytest
from opendev.store import history
from opendev.store.history import CommandHistory, Decision


def decision(number: int) -> Decision:
    return Decision(at="t", run="r", agent="a", tool="run_command", command=f"make {number}", action="allow")


@pytest.mark.req("APR-07", "ARC-05")
def test_the_history_is_private_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_BYTES", 1_000)
    log = CommandHistory(tmp_path)
    for number in range(60):
        log.append(decision(number).to_json(), durable=False)
    assert log.path.stat().st_mode & 0o777 == 0o600
    sizes = [path.stat().st_size for path in tmp_path.glob("decisions*.jsonl")]
    assert len(sizes) == 2
    assert max(sizes) < 1_300
    log.path.write_text(log.path.read_text() + "torn\n")
    kept = [row.command for row in log.decisions()]
    assert kept == [f"make {number}" for number in range(60 - len(kept), 60)]
    assert len(kept) > 5
