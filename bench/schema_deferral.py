#!/usr/bin/env python3
"""Measures what the tools' schemas cost in each request, by the setting schema_deferral (N-05).

    bench/schema_deferral.py [--activated N]

The schemas are those of the real catalogue for the main agent, with the agent types filled in, as they are sent. Tokens are
estimated at four characters each. ``--activated`` adds a row with the N cheapest and the N dearest deferred tools activated.
"""

import argparse

from opendev.agents.specs import builtin_specs
from opendev.agents.subagents import on_offer
from opendev.core.chat import ToolSchema, canonical
from opendev.tools.catalog import BUILTIN
from opendev.tools.registry import Deferral, ToolRegistry


def size(schemas: tuple[ToolSchema, ...]) -> int:
    """Characters of the schemas in canonical JSON."""
    return sum(len(canonical(schema.model_dump())) for schema in schemas)


def rows(activated: int) -> list[str]:
    """The table."""
    variables = {"AGENTS": on_offer(builtin_specs().values())}

    def sent(deferral: Deferral, *names: str) -> tuple[ToolSchema, ...]:
        return ToolRegistry(BUILTIN, deferral=deferral).schemas(variables, names)

    late = sorted(ToolRegistry(BUILTIN, deferral="all").deferred(), key=lambda schema: size((schema,)))
    cheap, dear = late[:activated], late[len(late) - activated :]
    cases = [
        ("off and external", sent("external")),
        ("all, nothing activated", sent("all")),
        (f"all, {activated} cheapest activated", sent("all", *(schema.name for schema in cheap))),
        (f"all, {activated} dearest activated", sent("all", *(schema.name for schema in dear))),
    ]
    whole = size(cases[0][1])
    table = ["| schema_deferral | tools sent | characters | tokens | share |", "|---|---|---|---|---|"]
    for name, schemas in cases:
        chars = size(schemas)
        table.append(f"| {name} | {len(schemas)} | {chars:,} | {chars // 4:,} | {chars / whole:.0%} |")
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--activated", type=int, default=3)
    print("\n".join(rows(parser.parse_args().activated)))


if __name__ == "__main__":
    main()
