"""What a language server finds wrong in a file after an edit, added to the edit's result (FIL-10)."""

from ..core.tool import ToolContext, ToolResult

MAX_FILES = 5  # of one call that are asked about
MAX_SHOWN = 20


async def with_problems(result: ToolResult, ctx: ToolContext) -> ToolResult:
    """``result`` with the errors of the first changed file that has some; as it is without a running server or on failure."""
    if not result.ok:
        return result
    for path in result.changed[:MAX_FILES]:
        found = (await ctx.symbols.problems(ctx.root, path) or ())[:MAX_SHOWN]
        if found:
            rows = "\n".join(f"line {one.line}: {one.message}" for one in found)
            text = f"{result.text}\nLSP errors detected in {path}:\n{rows}"
            data = {**(result.data or {}), "problems": [one.model_dump(mode="json") for one in found]}
            return result.model_copy(update={"text": text, "data": data})
    return result
