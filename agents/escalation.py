"""From a smaller model to the strongest tier once an agent keeps failing (MOD-10)."""

from ..core.chat import Role
from ..core.events import Notice
from .iteration import IterationContext


def escalate(ctx: IterationContext) -> None:
    """After ``escalate_after`` failed answers or refused claims in a row the rest of the run is the stronger model's; once, and told."""
    strong, after = ctx.settings.escalate_to, ctx.settings.escalate_after
    failures = max(ctx.recovery.streak, ctx.verifier.attempts)
    if not strong or not after or failures < after or strong == ctx.model or ctx.task.recipe:
        return
    if ctx.settings.window(strong) < ctx.settings.window(ctx.model):
        if ctx.nudge("escalation", 1):
            text = f"{strong} has a smaller window than {ctx.model}, so it does not take over after {failures} failures."
            ctx.emit(Notice(level="warning", text=text))
        return
    ctx.emit(Notice(level="info", text=f"{ctx.model} failed {failures} times in a row; {strong} takes over."))
    ctx.model = ctx.models[Role.ACTION] = strong
