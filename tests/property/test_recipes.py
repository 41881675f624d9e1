"""A recipe survives its way through a prompt, whatever text it holds."""

from hypothesis import given
from hypothesis import strategies as st
from opendev.core.ticket import Delete, Insert, Move, RecipeStep, RenameSymbol, Replace, Rewrite, Run, Write
from opendev.llm.recipes import fence, parse, tool_call

TEXT = st.text(max_size=60) | st.sampled_from(
    ["```", "\n```\n", "```recipe\n[]\n```", "\u2028", "\r\n", '"', "\\n"]
)
SOME = TEXT.filter(bool)
STEP: st.SearchStrategy[RecipeStep] = st.one_of(
    st.builds(RenameSymbol, symbol=TEXT, to=TEXT, path=TEXT),
    st.builds(Replace, pattern=TEXT, replacement=TEXT, glob=TEXT, regex=st.booleans()),
    st.builds(Rewrite, lang=TEXT, pattern=TEXT, rewrite=TEXT, glob=TEXT),
    st.builds(Write, path=TEXT, content=TEXT),
    st.builds(Insert, path=TEXT, after=SOME, content=TEXT),
    st.builds(Insert, path=TEXT, before=SOME, content=TEXT),
    st.builds(Delete, path=TEXT),
    st.builds(Move, source=TEXT, to=TEXT),
    st.builds(Run, command=TEXT),
)


@given(
    steps=st.lists(STEP, max_size=6).map(tuple),
    before=TEXT,
    after=st.sampled_from(["", "\nend", "\n```\nx\n```"]),
)
def test_fence_and_parse_are_inverse(steps: tuple[RecipeStep, ...], before: str, after: str) -> None:
    block = fence(steps)
    assert parse(f"{before}\n{block}{after}") == steps
    assert block.isascii()
    assert block.count("\n") == 2


@given(step=STEP)
def test_every_step_has_a_call_that_holds_its_text(step: RecipeStep) -> None:
    name, arguments = tool_call(step)
    assert name.isidentifier()
    if isinstance(step, Insert):
        assert arguments["new_content"] in (step.after + step.content, step.content + step.before)
