"""What a model says reaches the user's terminal as text, never as an order to it (U16, U01)."""

from collections.abc import Callable

import pytest
from support.command_line import Sandbox
from support.model_server import ModelServer, text

ORDERS = "\x1b]0;evil\x07\x1b[2J\x1b[31mred\u202ereversed\r\x9b2Kdone"


@pytest.mark.usefixtures("openai_loaded")
def test_no_control_sequence_of_the_answer_reaches_the_terminal(
    sandbox: Sandbox, serve: Callable[..., ModelServer]
) -> None:
    serve(text(ORDERS))
    done = sandbox.here("-p", "Say it.")
    assert done.code == 0
    for shown in (done.stdout, done.stderr):
        assert not set(shown) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}, ascii(shown)
        assert "reversed" in shown
