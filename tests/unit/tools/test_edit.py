"""The nine passes: the right place or a refusal, and nothing but the edit is written."""

from typing import Any

import pytest
from opendev.core.errors import OpenDevError
from opendev.tools.edit import chain
from opendev.tools.edit.chain import edit
from opendev.tools.edit.document import Document
from opendev.tools.edit.passes import MAX_REGIONS

FUNCTION = "def f(a):\n    x = a + 1\n    y = x * 2\n    return y\n"


def run(raw: str, old: str, new: str, **more: Any) -> chain.Edited:
    return edit(raw, old, new, path="f", **more)


def refused(raw: str, old: str, new: str, **more: Any) -> str:
    with pytest.raises(OpenDevError) as caught:
        run(raw, old, new, **more)
    return str(caught.value)


@pytest.mark.req("FIL-12")
def test_an_exact_match_runs_the_first_pass_only() -> None:
    class Never:
        name = "never"

        def find(self, document: Document, wanted: Any) -> None:
            raise AssertionError("a second pass ran")

    passes = (chain.STRICT[0], *(Never() for _ in range(8)))
    assert run("a = 1\n", "a = 1", "a = 2", passes=passes).by == "exact"


@pytest.mark.req("FIL-06")
def test_the_chain_has_the_nine_passes_in_order() -> None:
    assert [replacer.name for replacer in chain.STRICT] == [
        "exact",
        "line-trimmed",
        "block-anchor",
        "whitespace-normalized",
        "indentation-flexible",
        "escape-normalized",
        "trimmed-boundary",
        "context-aware",
        "multi-occurrence",
    ]


@pytest.mark.req("FIL-07")
@pytest.mark.parametrize(
    ("raw", "old", "new", "by", "result"),
    [
        ("a = 1\nb = 2\n", "b = 2", "b = 3", "exact", "a = 1\nb = 3\n"),
        ("a = 1  \nb = 2\n", "a = 1\nb = 2\n", "a = 1\nb = 3\n", "line-trimmed", "a = 1  \nb = 3\n"),
        (
            FUNCTION,
            "def f(a):\n  x = a + 1\n  y = x * 2\n  return y",
            "def f(a):\n  x = a + 1\n  if x:\n    y = x * 3\n  return y",
            "block-anchor",
            "def f(a):\n    x = a + 1\n    if x:\n        y = x * 3\n    return y\n",
        ),
        ("x  =   1 + 2\nz\n", "x = 1 + 2", "x = 3", "whitespace-normalized", "x = 3\nz\n"),
        ("f(a,  b); g()\n", "f(a, b)", "f(b)", "whitespace-normalized", "f(b); g()\n"),
        (
            "if a:\n\n\tgo()\n",
            "if a:\n    go()\n",
            "if a:\n    stop()\n",
            "indentation-flexible",
            "if a:\n\n\tstop()\n",
        ),
        ('say("hi")\nx\n', 'say(\\"hi\\")\\nx', 'say(\\"ho\\")\\nx', "escape-normalized", 'say("ho")\nx\n'),
        ("a\nlast", "last\n", "end\n", "trimmed-boundary", "a\nend"),
        (
            "a = \u201cx\u201d\nb\nc = 1\n",
            'a = "x"\nb\nc = 1',
            'a = "x"\nb\nc = 2',
            "context-aware",
            "a = \u201cx\u201d\nb\nc = 2\n",
        ),
        (FUNCTION, "     2\t    x = a + 1\n     3\t    y = x * 2", "     2\t    x = a\n     3\t    y = x * 2",
         "multi-occurrence", "def f(a):\n    x = a\n    y = x * 2\n    return y\n"),
        ("say \u2018hi\u2019 now\n", "'hi'", "'ho'", "multi-occurrence", "say 'ho' now\n"),
    ],
)  # fmt: skip
def test_each_pass_finds_its_kind_and_keeps_the_rest(
    raw: str, old: str, new: str, by: str, result: str
) -> None:
    edited = run(raw, old, new)
    assert (edited.by, edited.text) == (by, result)
    assert edited.matched[0] in raw


@pytest.mark.req("FIL-08")
@pytest.mark.parametrize(
    ("raw", "old"),
    [
        ("x\ny\nx\n", "x"),
        ("aaa\n", "aa"),
        ("  x = 1\n    x = 1\n", "\tx = 1\n"),
        ("f(a,  b)\nf(a,   b)\n", "f(a, b)"),
    ],
)
def test_several_places_are_refused_with_count_and_lines(raw: str, old: str) -> None:
    assert "matched 2 times" in refused(raw, old, "new")


def test_a_long_list_of_places_is_bounded_but_counted() -> None:
    message = refused("x\n" * 5_000, "x", "y")
    assert "matched 5000 times" in message
    assert "and 4980 more" in message
    assert len(message) < 1_000
    assert run("x\n" * 5_000, "x", "y", replace_all=True).text == "y\n" * 5_000
    assert f"at least {MAX_REGIONS} times" in refused("x" * (MAX_REGIONS + 1), "x", "y", replace_all=True)


@pytest.mark.req("FIL-08")
def test_replace_all_changes_every_place_with_its_own_indentation() -> None:
    raw = "if a:\n\tgo(1)\nwhile b:\n\t\tgo(1)\n"
    assert run(raw, "    go(1)\n", "    go(2)\n", replace_all=True).text == raw.replace("go(1)", "go(2)")
    assert run("aaaa", "aa", "b", replace_all=True).text == "bb"


@pytest.mark.req("C-46")
@pytest.mark.parametrize(
    ("raw", "old"),
    [
        (FUNCTION, "def f(a):\n    return 7\n    return y"),
        (FUNCTION, "def f(a):\n    x = a - 1\n    y = x * 2\n    return y"),
        ("function foo() {\n  real();\n}\n", "function foo() {\n}\n"),
        ("max = 10\n", "x  = 10"),
        ("return x1\n", "\n  return x\n"),
        ("f(a)\n", "\n(a)"),
        ("g(a)(b)\n", "(a)\n"),
    ],
)
def test_other_content_is_refused_and_the_region_shown(raw: str, old: str) -> None:
    message = refused(raw, old, "new")
    assert "nothing was written" in message.lower()
    assert "(0 matches)" in message
    assert raw.split("\n")[0] in message or "no line resembles it" in message


def test_the_hint_is_exact_and_numbered() -> None:
    message = refused("\n" + FUNCTION, FUNCTION.replace("x * 2", "x * 3"), "new")
    assert f"lines 2-5, whose exact text is:\n{FUNCTION}" in message
    assert "`y = x * 3`" in message
    assert "`y = x * 2`" in message


def test_a_huge_hint_is_bounded() -> None:
    raw = "".join(f"line {n} " + "x" * 300 + "\n" for n in range(400))
    assert len(refused(raw, raw.replace("line 200 ", "line zwei "), "new")) < 6_000


@pytest.mark.parametrize("new", ['print("a\\nb")\\nx', 'say(\\"a\\tb\\")\\nx', "\\tx"])
def test_an_escape_that_may_be_meant_is_not_undone(new: str) -> None:
    assert "not clear" in refused('say("hi")\nx\n', 'say(\\"hi\\")\\nx', new)


def test_numbers_on_some_new_lines_only_are_refused() -> None:
    assert "some lines only" in refused(
        "a = 1\nb = 2\n", "     1\ta = 1\n     2\tb = 2", "     1\ta = 1\nb = 3"
    )


def test_data_that_looks_like_numbers_is_content() -> None:
    assert "0 matches" in refused("one\ntwo\n", "1: one\n5: two", "x")


@pytest.mark.parametrize(
    ("raw", "old", "new", "result"),
    [
        (
            "\tif a:\n\t\tgo()\n",
            "if a:\n    go()",
            "if a:\n    go()\n    stop()",
            "\tif a:\n\t\tgo()\n\t\tstop()\n",
        ),
        (
            "  a:\n    go()\n",
            "\ta:\n\t\tgo()",
            "\ta:\n\t\tif b:\n\t\t\tgo()",
            "  a:\n    if b:\n      go()\n",
        ),
        ("\t\tgo()\n", "    go()\n", "    if b:\n        go()\n", "\t\tif b:\n\t\t\tgo()\n"),
        (
            "\t\tgo()\n\t\tgo2()\n",
            "        go()\n        go2()",
            "        go()\n    go2()",
            "\t\tgo()\n\tgo2()\n",
        ),
        ("    a\n        b\n", "  a\n    b", "  a\n    b\n      c", "    a\n        b\n            c\n"),
    ],
)
def test_new_lines_take_the_indentation_of_the_file(raw: str, old: str, new: str, result: str) -> None:
    assert run(raw, old, new).text == result


@pytest.mark.parametrize(
    ("raw", "old", "new", "result"),
    [
        ("a\r\nb\r\n", "a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
        ("a\nb\n", "a\r\nb\r\n", "a\r\nc\r\n", "a\nc\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nb\nc\nd\n", "a\r\nb\nc\r\nd\r\n"),
        ("a \r\nb\n", "a\nb\n", "a\nc\n", "a \r\nc\n"),
        ("a\rb\rc", "b\n", "x\ny\n", "a\rx\ry\rc"),
        ("a\rb\nc\n", "c", "d", "a\rb\nd\n"),
        ("one", "one", "one\r\ntwo", "one\r\ntwo"),
        ("a  \nlast  ", "last\n", "last\nmore\n", "a  \nlast\nmore  "),
        ("a\x0bb\u2028c\x85d\n", "d", "e", "a\x0bb\u2028c\x85e\n"),
    ],
)
def test_line_ends_stay_and_new_lines_take_the_neighbours(raw: str, old: str, new: str, result: str) -> None:
    assert run(raw, old, new).text == result


@pytest.mark.parametrize("old", ["", " \n ", "same"])
def test_an_edit_that_means_nothing_is_refused(old: str) -> None:
    refused("same\n", old, "same")


def test_a_change_of_line_ends_alone_is_refused() -> None:
    assert "changes nothing" in refused("a\r\nb\r\n", "a\r\nb", "a\nb")


@pytest.mark.req("C-46")
def test_apply_takes_the_best_region_as_the_paper_does() -> None:
    old = FUNCTION.replace("x = a + 1", "x = a + 2").rstrip("\n")
    passes = chain.chain("apply")
    assert run(FUNCTION, old, "def f(a):\n    return a", passes=passes).text == "def f(a):\n    return a\n"


def test_unchanged_lines_between_changed_ones_keep_their_white_space() -> None:
    edited = run("a = 1\nmid  x\nc = 1\n", "a = 1\nmid x\nc = 1", "a = 2\nmid x\nc = 2")
    assert edited.text == "a = 2\nmid  x\nc = 2\n"


def test_deleting_lines_through_an_approximate_pass_leaves_no_hole() -> None:
    assert run("a\n\tb\nc\n", "    b\n", "").text == "a\nc\n"


# The shared cases of group 1 that need no file: id, content, old, new, result (None: refused).
CASES: list[tuple[str, str, str, str, str | None]] = [
    (
        "E01",
        "func f() {\n\tif ok {\n\t\treturn 1\n\t}\n}\n",
        "    if ok {\n        return 1\n    }",
        "    if ok {\n        return 2\n    }",
        "func f() {\n\tif ok {\n\t\treturn 2\n\t}\n}\n",
    ),
    (
        "E03",
        "begin\r\n  x := 1;\r\nend.\r\n",
        "begin\n  x := 1;\nend.",
        "begin\n  x := 2;\n  y := 3;\nend.",
        "begin\r\n  x := 2;\r\n  y := 3;\r\nend.\r\n",
    ),
    ("E06", '{\n  "a": 1\n}', '"a": 1', '"a": 2', '{\n  "a": 2\n}'),
    ("E13", "msg = '%s'\n", "'%s'", "\u2018%s\u2019", "msg = \u2018%s\u2019\n"),
    ("E15", 'log("done");\n', 'log("done");', 'log("$& $$ $1 $` $\'");', 'log("$& $$ $1 $` $\'");\n'),
    ("E17", "pass\n", "pass", 'print("Hello\\nworld")', 'print("Hello\\nworld")\n'),
    (
        "E19",
        "w = {\n  'name': 1,\n  'used': 0,\n}\nb = {\n  'name': 2,\n  'used': 0,\n}\n",
        "  'used': 0,\n",
        "  'used': 9,\n",
        None,
    ),
    (
        "E21",
        "function q() {\n  const c = open()\n  if (c) {\n    use(c)\n  }\n  close(c)\n}\n",
        "function q() {\n  return cache.get(key)\n}",
        "function q() {\n  return 1\n}",
        None,
    ),
    (
        "E23",
        "function foo() {\n  real1();\n  real2();\n}\n",
        "function foo() {\n}\n",
        "function foo() { return 0; }\n",
        None,
    ),
    (
        "E25",
        "def get_user(i):\n    r = db.find('user', i)\n    log(r)\n    return r\n\ndef get_team(i):\n    r = db.find('team', i)\n    log(r)\n    return r\n",
        "def get_teams(i):\n    r = db.find('team', i)\n    log(r)\n    return r",
        "def get_team(i):\n    return db.find('team', i)",
        None,
    ),
    ("E26", "important\n", "", "x\n", None),
    ("E28", "Hello World\n", " World", "", "Hello\n"),
    ("E35", "gem 'rails'\n", "gem 'sinatra'", "gem 'hanami'", None),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_the_shared_cases(case: tuple[str, str, str, str, str | None]) -> None:
    _, raw, old, new, result = case
    if result is None:
        refused(raw, old, new)
    else:
        assert run(raw, old, new).text == result
