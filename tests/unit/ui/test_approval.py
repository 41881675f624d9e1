"""The approval card and its menu: everything shown, nothing hidden, no key that allows by accident (APR-06, APR-08, S42)."""

from typing import Any

import pytest
from opendev.core.approval import ApprovalRequest
from opendev.policy.grants import Choice
from opendev.ui.approval import Menu, answer_of, card_lines


def request(command: str = "npm install x", **fields: Any) -> ApprovalRequest:
    base: dict[str, Any] = {"id": "q", "agent_id": "a-1", "agent": "Coder", "tool": "run_command", "reason": "it installs", "keep": "always"}  # fmt: skip
    return ApprovalRequest.model_validate(
        {**base, "arguments": {"command": command}, "card": f"run_command\ncommand: {command}", **fields}
    )


def test_the_card() -> None:
    assert card_lines(request()) == (
        "Coder (a-1) asks to run run_command",
        "why: it installs",
        "run_command",
        "command: npm install x",
        "[y] Allow once: this call, this one time",
        "[s] Allow in this session: until this session ends, without asking: commands that begin with the words `npm install`,"
        " by any agent, each in its own folder",
        "[a] Always allow: from now on in this project, saved in permissions.json: commands that begin with the words `npm install`",
        "[n] Deny: the call does not run; the agent is told so",
    )


@pytest.mark.req("APR-08")
def test_nothing_on_the_card_is_hidden_or_moves_the_cursor() -> None:
    lines = card_lines(request("rm -rf a\x1b[2K\r 2>/dev/null\nrm -rf .\n\u202eabc", reason="x\x07"))
    text = "\n".join(lines)
    assert "rm -rf ." in text
    assert not any(char in text for char in "\x1b\r\x07\u202e")


@pytest.mark.req("APR-08", "TUI-02")
def test_the_keys() -> None:
    menu = Menu(request())
    assert menu.marked.decision == "deny"
    assert isinstance(found := menu.press("enter"), Choice)
    assert found.decision == "deny"
    seen: list[str] = []
    for _ in range(5):
        after = menu.press("down")
        assert isinstance(after, Menu)
        menu = after
        seen.append(menu.marked.decision)
    assert seen == ["once", "session", "always", "deny", "once"]
    back = menu.press("up")
    assert isinstance(back, Menu)
    assert back.marked.decision == "deny"
    keys = {
        "y": "once",
        "Y": "once",
        "s": "session",
        "a": "always",
        "n": "deny",
        "2": "session",
        "esc": "deny",
    }
    for key, decision in keys.items():
        assert isinstance(picked := menu.press(key), Choice)
        assert picked.decision == decision
    for key in ("5", "0", "x", " ", "", "ctrl-b"):
        assert menu.press(key) == menu


def test_an_answer_is_bound_to_what_was_shown() -> None:
    asked = request()
    found = answer_of(asked, Menu(asked).choices[0], by="me", note="ok")
    assert (found.decision, found.digest, found.by, found.note) == ("once", asked.digest, "me", "ok")
