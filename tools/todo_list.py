"""The agent's own list of todos: how an item is found, the rule of one item in work, and the order it is shown in (TSK-03..05)."""

import re
from typing import Any

from ..core.errors import ErrorKind, OpenDevError
from ..core.tool import AgentMemo, Todo, TodoState

MAX_TODOS = 100
_ORDER = {TodoState.DOING: 0, TodoState.TODO: 1, TodoState.DONE: 2}
_MARKS = {TodoState.DOING: "[~]", TodoState.TODO: "[ ]", TodoState.DONE: "[x]"}
_STATES = {"pending": "todo", "open": "todo", "in_progress": "doing", "in-progress": "doing", "active": "doing",
           "completed": "done", "complete": "done", "finished": "done"}  # fmt: skip


def state_of(value: Any) -> Any:
    """Other agents' words for a state become ours; anything else passes, for validation to refuse."""
    return _STATES.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


def find(memo: AgentMemo, key: str) -> int:
    """The index of the item named by its number, title or slug.

    Raises:
        OpenDevError: ``NOT_FOUND``, with the list, when none or more than one fits.
    """
    number = re.fullmatch(r"\s*(?:todo[-_ ]?|#)?(\d{1,9})\s*", key, re.IGNORECASE)
    wanted = number[1] if number else key.strip()
    fits = [i for i, todo in enumerate(memo.todos) if todo.id == wanted]
    fits = fits or [
        i for i, t in enumerate(memo.todos) if _slug(_title(t)) == _slug(key) or _slug(t.text) == _slug(key)
    ]
    if len(fits) == 1:
        return fits[0]
    why = "more than one todo fits" if fits else "there is no todo"
    raise OpenDevError(
        ErrorKind.NOT_FOUND, f"{why.capitalize()} `{key[:80]}`.", f"The list is:\n{show(memo)}"
    )


def put(memo: AgentMemo, index: int, todo: Todo) -> None:
    """Replace one item. When it goes into work, the item that was in work returns to ``todo``."""
    if todo.state is TodoState.DOING:
        memo.todos[:] = [
            t.model_copy(update={"state": TodoState.TODO}) if t.state is TodoState.DOING else t
            for t in memo.todos
        ]
    memo.todos[index] = todo


def replace_all(memo: AgentMemo, items: list[tuple[str, TodoState]]) -> None:
    """A new list, numbered from 1; of several items in work only the first stays so."""
    todos: list[Todo] = []
    for number, (text, state) in enumerate(items[:MAX_TODOS], 1):
        busy = any(todo.state is TodoState.DOING for todo in todos)
        todos.append(
            Todo(
                id=str(number),
                text=text,
                state=TodoState.TODO if busy and state is TodoState.DOING else state,
            )
        )
    memo.todos[:] = todos


def show(memo: AgentMemo) -> str:
    """One line an item, those in work first, then open, then done."""
    ordered = sorted(memo.todos, key=lambda todo: _ORDER[todo.state])
    lines = [f"{_MARKS[t.state]} {t.id}. {t.text}{f' ({t.log})' if t.log else ''}" for t in ordered]
    return "\n".join(lines) or "(the list is empty)"


def counts(memo: AgentMemo) -> str:
    """For a summary: ``5 todos, 2 done``."""
    done = sum(todo.state is TodoState.DONE for todo in memo.todos)
    return f"{len(memo.todos)} todos, {done} done"


def as_data(memo: AgentMemo) -> dict[str, Any]:
    """The list as JSON, in order of its numbers."""
    return {"todos": [todo.model_dump(mode="json") for todo in memo.todos]}


def _title(todo: Todo) -> str:
    return todo.text.split(" — ", 1)[0]


def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.casefold()).strip("-")
