"""The terminal as prompt_toolkit writes to it, and what it can do. Nothing is asked of the terminal, and without colour no SGR is sent (U11)."""

import os
from dataclasses import dataclass
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Attrs
from prompt_toolkit.utils import get_term_environment_variable
from rich.console import Console

from ...configs.load import read_environment


@dataclass(frozen=True, slots=True)
class Abilities:
    """``moves``: the cursor can be moved (no dumb terminal, no CI). ``colour``: SGR is wanted. ``unicode``: beyond ASCII."""

    moves: bool
    colour: bool
    unicode: bool

    @classmethod
    def of(cls, out: TextIO) -> "Abilities":
        """What the terminal behind ``out`` can do, by its environment."""
        console = Console(file=out)
        dumb = console.is_dumb_terminal or bool(read_environment().get("CI"))
        encoding = (out.encoding or "ascii").lower().replace("-", "")
        return cls(not dumb, not (dumb or console.no_color), encoding.startswith("utf"))


class Terminal(Vt100_Output):
    """Writes to ``out``. It never asks for the cursor's position: the answer would come in among what is typed."""

    def __init__(self, out: TextIO, abilities: Abilities) -> None:
        super().__init__(
            out, lambda: size_of(out), get_term_environment_variable(), enable_bell=False, enable_cpr=False
        )
        self._colour = abilities.colour

    def set_attributes(self, attrs: Attrs, color_depth: ColorDepth) -> None:
        """Nothing without colour."""
        if self._colour:
            super().set_attributes(attrs, color_depth)

    def reset_attributes(self) -> None:
        """Nothing without colour."""
        if self._colour:
            super().reset_attributes()


def size_of(out: TextIO) -> Size:
    """Rows and columns, 24 by 80 where the terminal does not say."""
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)
