"""What a provider would refuse: one strict validator for each dialect, on what litellm is handed and on what Anthropic gets."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from opendev.core.chat import MessageClass, ModelRequest
from opendev.llm.convert import to_messages, to_tools

Json = dict[str, Any]


def refusals(requests: Sequence[ModelRequest]) -> list[str]:
    """All that OpenAI or Anthropic would answer with 400 to these requests; empty when all is well."""
    return [
        f"request {n} ({dialect}): {fault}"
        for n, request in enumerate(requests)
        for dialect, check in (("openai", openai_faults), ("anthropic", anthropic_faults))
        for fault in (*_tool_faults(request), *check(request))
    ]


def openai_faults(request: ModelRequest) -> Iterator[str]:
    """Chat completions: roles in order, content never blank, every call answered at once by exactly one tool message."""
    rows = to_messages(request.messages, anthropic=False)
    yield from _no_tags(rows)
    yield from _pairing(rows)
    seen: set[str] = set()
    for place, row in enumerate(rows):
        role, calls = row.get("role"), cast("list[Json]", row.get("tool_calls") or [])
        if role not in ("system", "user", "assistant", "tool") or (role == "system" and place):
            yield f"a message of role {role!r} at place {place}"
        if "tool_calls" in row and not calls:
            yield "an empty list of calls"
        if not calls and not str(row.get("content") or "").strip():
            yield f"a blank {role} message"
        for call in calls:
            yield from _call_faults(call, seen)
    if not any(row["role"] == "user" for row in rows):
        yield "no user message"


def _pairing(rows: list[Json]) -> Iterator[str]:
    """Each call has its one result before anybody else speaks."""
    waiting: list[str] = []
    for row in [*rows, {"role": "end"}]:
        if row["role"] == "tool":
            if row.get("tool_call_id") in waiting:
                waiting.remove(str(row["tool_call_id"]))
            else:
                yield f"a result without a call: {row.get('tool_call_id')}"
            continue
        if waiting:
            yield f"calls without a result: {waiting}"
        waiting = [str(call["id"]) for call in cast("list[Json]", row.get("tool_calls") or [])]


def anthropic_faults(request: ModelRequest) -> Iterator[str]:
    """The messages API: system apart, turns alternate, results first in the turn right after their calls, no blank block."""
    rows = to_messages(request.messages, anthropic=True)
    turns = _anthropic_turns(rows)
    if not turns or turns[0][0] != "user":
        yield "the first turn is not the user's"
    calls: list[str] = []
    for place, (role, blocks) in enumerate(turns):
        results = [str(b["tool_use_id"]) for b in blocks if b["type"] == "tool_result"]
        if sorted(results) != sorted(calls):
            yield f"turn {place}: results {results} for calls {calls}"
        kinds = [b["type"] for b in blocks]
        if "tool_result" in kinds and kinds[: len(results)] != ["tool_result"] * len(results):
            yield f"turn {place}: a result that does not come first"
        yield from (
            f"turn {place}: a blank {b['type']} block"
            for b in blocks
            if b["type"] in ("text", "tool_result") and not str(b.get("text", b.get("content", ""))).strip()
        )
        calls = [str(b["id"]) for b in blocks if b["type"] == "tool_use"] if role == "assistant" else []
    if calls:
        yield f"calls without a result at the end: {calls}"
    if turns and turns[-1][0] == "assistant" and str(turns[-1][1][-1].get("text", "")).endswith((" ", "\n")):
        yield "a final assistant turn with trailing white space"


def _anthropic_turns(rows: list[Json]) -> list[tuple[str, list[Json]]]:
    """Rows as the adapter sends them: neighbours of one side are one turn."""
    turns: list[tuple[str, list[Json]]] = []
    for row in rows:
        if row["role"] == "system":
            continue
        side = "assistant" if row["role"] == "assistant" else "user"
        blocks = _blocks(row)
        if turns and turns[-1][0] == side:
            turns[-1][1].extend(blocks)
        else:
            turns.append((side, blocks))
    return turns


def _blocks(row: Json) -> list[Json]:
    if row["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": row["tool_call_id"], "content": row["content"]}]
    blocks: list[Json] = []
    if row.get("content") is not None:
        blocks.append({"type": "text", "text": row["content"]})
    blocks += [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}
        for call in row.get("tool_calls") or ()
    ]
    return blocks


def _call_faults(call: Json, seen: set[str]) -> Iterator[str]:
    id, function = str(call.get("id", "")), cast("Json", call["function"])
    if not id or id in seen:
        yield f"a call id that is empty or used before: {id!r}"
    seen.add(id)
    if not isinstance(json.loads(str(function["arguments"])), dict):
        yield f"arguments that are no object: {function['arguments']}"


def _tool_faults(request: ModelRequest) -> Iterator[str]:
    names = [tool["function"]["name"] for tool in to_tools(request.tools)]
    if len(names) != len(set(names)) or names != sorted(names):
        yield f"tool names are not unique and sorted: {names}"


def _no_tags(rows: list[Json]) -> Iterator[str]:
    """Message classes are ours alone (REM-02)."""
    for row in rows:
        if (
            "msg_class" in row
            or "_msg_class" in row
            or any(isinstance(v, MessageClass) for v in row.values())
        ):
            yield "a message class on the wire"
