"""The history of what was typed (TUI-03): private, bounded, lenient."""

from pathlib import Path

from opendev.store.typed import KEPT, HistoryFile


def test_the_history_is_private_bounded_and_lenient(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path / "p" / "history")
    assert history.load() == []
    history.add("one\ntwo")
    history.add("  ")
    history.add("x" * 20_000)
    with history.path.open("ab") as file:
        file.write(b'\0\xff{"torn\n"ok"\n')
    assert history.load() == ["one\ntwo", "ok"]
    assert history.path.stat().st_mode & 0o777 == 0o600
    for number in range(2 * KEPT + 10):
        history.add(str(number))
    assert len(history.load()) == KEPT
    assert len(history.path.read_bytes().splitlines()) == KEPT
    HistoryFile(Path("/proc/nowhere/history")).add("no error")
