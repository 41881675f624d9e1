"""What moves above the prompt, and the line below it, as rows of styled text. Pure: of the feed, the figures and a size."""

from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from ...core.approval import Mode
from ...policy.visible import visible
from .dialogs import Dialog
from .feed import Feed
from .ports import Status

Fragment = tuple[str, str]
Rows = list[list[Fragment]]
TAIL_ROWS = 6  # of an answer that streams
CALLS = 4
FOOT_ROWS = 3  # of a dialog: its help, a problem, an empty row
CARD_ROWS = FOOT_ROWS + 2  # what is left for everything but the choices, at least
MENU_HELP = "↑ ↓ Enter, or the key · Esc refuses"
PICK_HELP = "↑ ↓ Enter, or a digit · Esc: no answer"
TICK_HELP = "space or a digit ticks · Enter ends · Esc: no answer"


@dataclass(frozen=True, slots=True)
class View:
    """What is drawn. ``seconds`` since the agent began; ``above``: the whole card stands in the scrollback."""

    feed: Feed
    status: Status
    dialog: Dialog | None = None
    waiting: int = 0  # dialogs behind this one
    seconds: float = 0.0
    stopping: bool = False
    command: str = ""  # the slash command that runs
    hint: str = ""
    guarded: bool = False  # keys go to the draft until typing pauses


def above(view: View, width: int, height: int) -> Rows:
    """The rows above the prompt, at most ``height``; a question stands in place of everything else."""
    if view.dialog is not None:
        rows = _dialog(view, view.dialog, width, height)
    else:
        rows = [*_tail(view.feed, width), *_calls(view.feed, width), *_work(view, width)]
    if view.hint:
        rows.append([("class:hint", clip(view.hint, width))])
    return rows[-height:] if view.dialog is None else rows[:height]


def card_fits(dialog: Dialog, width: int, height: int) -> bool:
    """Whether the whole card can stand above its choices."""
    rows = sum(len(_choice(dialog, index, width, told=True)) for index in range(len(dialog.rows)))
    return len(_card(dialog, width)) + rows + FOOT_ROWS <= height


def toolbar(view: View, width: int) -> list[Fragment]:
    """Mode, model, cost, context, agents at work, background tasks; what does not fit is left out from the end (TUI-04)."""
    status = view.status
    names = [*status.agents] or [*view.feed.agents.values()]
    parts = [
        "plan mode" if status.mode is Mode.PLAN else "normal",
        visible(status.model) or "no model",
        f"${status.usage.cost_usd:.4f}",
        f"{status.context:.0%} context",
    ]
    if names:
        parts.append(f"{len(names)} agent{'s' * (len(names) > 1)}: {visible(', '.join(names))}")
    if status.tasks:
        parts.append(f"{status.tasks} background task{'s' * (status.tasks > 1)}")
    if len(" · ".join(parts)) + 2 > width:  # the model by its short name
        parts[1] = parts[1].rsplit("/", 1)[-1]
    while len(parts) > 1 and sum(map(get_cwidth, parts)) + 3 * (len(parts) - 1) + 2 > width:
        parts.pop(1 if len(parts) == 4 else -1)
    mark = "class:plan" if status.mode is Mode.PLAN else "class:toolbar"
    rest = "".join(f" · {part}" for part in parts[1:])
    return [(mark, clip(f"  {parts[0]}", width)), ("class:toolbar", clip(rest, width - len(parts[0]) - 2))]


def wrap(text: str, width: int) -> list[str]:
    """``text`` cut to rows of at most ``width`` cells, at blanks where there are some; wide characters count two."""
    width = max(width, 2)
    rows: list[str] = []
    for line in text.split("\n"):
        rest = line.expandtabs(4)
        while get_cwidth(rest) > width:
            cut = _cells(rest, width)
            blank = rest.rfind(" ", 0, cut + 1)
            cut = blank if blank > width // 3 else cut
            rows.append(rest[:cut].rstrip())
            rest = rest[cut:].lstrip(" ")
        rows.append(rest)
    return rows


def clip(text: str, width: int) -> str:
    """One row of ``text``, with an ellipsis where something is cut off."""
    if get_cwidth(text) <= width:
        return text
    return text[: _cells(text, max(width - 1, 0))] + "…" if width > 0 else ""


def _cells(text: str, width: int) -> int:
    """How many characters of ``text`` fit in ``width`` cells."""
    used = 0
    for index, char in enumerate(text):
        used += get_cwidth(char)
        if used > width:
            return max(index, 1)
    return len(text)


def _tail(feed: Feed, width: int) -> Rows:
    if not feed.stream.open.strip():
        return []
    text = visible(feed.stream.open[-TAIL_ROWS * max(width, 2) * 2 :]).strip("\n")
    rows = wrap(text, width - 4)[-TAIL_ROWS:]
    return [[("", "")], *([("", "  " + row)] for row in rows)]


def _calls(feed: Feed, width: int) -> Rows:
    rows: Rows = []
    for call in [*feed.calls.values()][-CALLS:]:
        who = feed.name_of(call.agent)
        rows.append(
            [("class:work", "○ "), ("", clip(f"{who}: {call.title}" if who else call.title, width - 2))]
        )
        last = visible(call.rest) or (call.last[-1] if call.last else "")
        if last.strip():
            rows.append([("class:dim", "    " + clip(last.strip(), width - 4))])
    return rows


def _work(view: View, width: int) -> Rows:
    rows: Rows = []
    todos = view.feed.todos
    if view.status.busy and todos:
        done = sum(todo.state == "done" for todo in todos)
        now = "".join(f" · {visible(todo.text)}" for todo in todos if todo.state == "doing")
        rows.append([("class:dim", clip(f"  todos {done}/{len(todos)}{now}", width))])
    if view.stopping:
        rows.append([("class:work", clip("Stopping …", width))])
    elif view.status.busy:
        text = f"Working · {view.seconds:.0f} s · Esc interrupts"
        rows.append([("class:work", clip(text, width))])
    elif view.command:
        rows.append([("class:work", clip(f"Running {visible(view.command)} …", width))])
    return [[("", "")], *rows] if rows else []


def _card(dialog: Dialog, width: int) -> list[str]:
    return [row for line in dialog.card for row in wrap(line, width - 2)]


def _choices(dialog: Dialog, width: int, height: int) -> Rows:
    """Every choice with its meaning; where that does not fit, only the marked one with its meaning."""
    whole = [_choice(dialog, index, width, told=True) for index in range(len(dialog.rows))]
    if sum(map(len, whole)) > height - CARD_ROWS:
        whole = [
            rows if index == dialog.at else _choice(dialog, index, width, told=False)
            for index, rows in enumerate(whole)
        ]
    return [row for rows in whole for row in rows]


def _choice(dialog: Dialog, index: int, width: int, *, told: bool) -> Rows:
    row, marked = dialog.rows[index], index == dialog.at
    tick = "" if row.on is None else ("[x] " if row.on else "[ ] ")
    text = f"{tick}{row.key}  {row.label}" + (f": {row.meaning}" if row.meaning and told else "")
    style = "class:marked" if marked else ""
    first, *rest = wrap(text, width - 7)
    return [[(style, f"  {'›' if marked else ' '} {first}")], *([(style, "       " + line)] for line in rest)]


def _dialog(view: View, dialog: Dialog, width: int, height: int) -> Rows:
    """The card (its end is left out where it does not fit: then it stands in full above) and the choices."""
    choices: Rows = [] if dialog.entry is not None else _choices(dialog, width, height)
    foot = _foot(view, dialog, width)
    room = max(height - len(choices) - len(foot) - 1, 1)
    card = _card(dialog, width)
    shown = card if len(card) <= room else [*card[: max(room - 1, 0)], f"… in full above ({len(card)} lines)"]
    head: Rows = [
        [("class:question" if number == 0 else "", ("? " if number == 0 else "  ") + clip(row, width - 2))]
        for number, row in enumerate(shown)
    ]
    return [[("", "")], *head, *choices, *foot]


def _foot(view: View, dialog: Dialog, width: int) -> Rows:
    several = dialog.rows and dialog.rows[0].on is not None
    digits = bool(dialog.rows) and dialog.rows[0].key == "1"
    text = TICK_HELP if several else PICK_HELP if digits else MENU_HELP
    if dialog.entry is not None:
        text = "Enter sends · Esc goes back"
    if view.waiting:
        text = f"{view.waiting} more wait{'s' * (view.waiting == 1)} · {text}"
    if view.guarded:
        text = "you were typing: pause a moment, then answer"
    rows: Rows = [[("class:dim", "  " + clip(text, width - 2))]]
    return [[("class:warn", "  " + clip(dialog.problem, width - 2))], *rows] if dialog.problem else rows
