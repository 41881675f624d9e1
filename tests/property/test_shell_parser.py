"""The parser against bash itself: whatever bash runs, the parser has reported, or it has said that it cannot tell (D1)."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.policy.confirm import confirm
from opendev.policy.shell import parse
from opendev.policy.unwrap import layers

BASH = shutil.which("bash") or ""
MARKS = st.sampled_from(
    ["mk1", "mk2 a", "mk3 'x y'", '"mk4" b', "m\\k5", "mk'6'", "$'mk7' c", "A=1 mk8", "mk9 >/dev/null", "mk1 2>&1", "'mk2'", "m\"k\"3",
     "mk3 a >/dev/null b", "mk4 2>&1 a b", "mk5 <<< x a", "mk6 a <<E b\nt\nE", "mk7 -x --y=z", "mk8 a\\ b", 'mk9 "q r" s', "mk3 ''a\"\"",
     "2>/dev/null mk4 a b", "mk5 a </dev/null b", "mk6 a 2>&1 >/dev/null b c", "mk7 a#b # c", "mk8 'a'\\''b'", 'mk9 "a\\"b"', 'v=q; mk1 $v "$v"']
)  # fmt: skip
FRAMES = st.sampled_from(
    [
        "{0}", "{0}; {1}", "true && {0}", "true | {0}", "{0} 2>/dev/null", "[[ a ]] && {0}", "{0} && {1}", "{0} || {1}", "{0}\n{1}", "{0} | {1}", "{0} |& {1}", "{0} & wait", "! {0}", "( {0} )", "{{ {0}; }}",
        "if {0}; then {1}; fi", "if ! {0}; then :; else {1}; fi", "if false; then :; elif {0}; then {1}; fi", "while {0}; do {1}; break; done",
        "until ! {0}; do {1}; break; done", "for i in 1 2; do {0}; done", "for ((i=0;i<1;i++)); do {0}; done", "case x in x) {0};; esac",
        "case x in y) {1};; *) {0};; esac", "f() {{ {0}; }}; f", "function g {{ {0}; }}; g", "h() ( {0} ); h", "echo $( {0})", 'echo "$( {0})"',
        "echo `mk1`; {0}", "cat <( {0})", "{0} > >(cat)", "x=$( {0})", "x=a$( {0})b; echo $x", "y=($( {0}) b)", "echo ${{u:-$( {0})}}", 'echo "${{u:-$( {0})}}"',
        "echo ${{u#$( {0})}}", "[[ -n $( {0}) ]]", "[ -n \"$( {0})\" ]", "echo $(( $( {0} >/dev/null; echo 1) + 1 ))", "(( $( {0} >/dev/null; echo 1) )) && {1}",
        "cat <<E\na $( {0}) b\nE", "cat <<E; {1}\n$( {0})\nE", "cat <<-E\n\t$( {0})\n\tE\n{1}", "cat <<'E'\n{0}\nE\n{1}", "cat <<E | {1}\nx\nE", "cat <<< $( {0})",
        "# {0}\n{1}", "echo '# '; {0}", "time {0}", "true && {{ {0}; }} || {1}", "eval {q}", "bash -c {q}", "sh -c {q}", "env bash -c {q}", "trap {q} EXIT",
        "command eval {q}", "echo {q} | bash", "bash <<< {q}", "bash <<'E'\n{0}\nE", "bash < <(echo {q})", "timeout 5 bash -c {q}", "nice bash -c {q}", "c=mk3; $c; {0}",
        "set -e; {0}", "{0} \\\n ; {1}", "exec 3>&1; {0}", "a=1 b=2; {0}", "declare -i n=1; {0}", "echo ${{#a[@]}}; {0}", "echo @(a|b); {0}", "select z in 1; do {0}; break; done <<< 1",
        "coproc {{ {0}; }}; wait", "find . -maxdepth 0 -exec {m} \\;", "echo x | xargs {m}", "echo x | xargs -I{{}} {m} {{}}", "env {m}", "nohup {m}", "timeout 5 {m}", "nice -n 1 {m}", "stdbuf -oL {m}",
    ]
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line of harmless marker commands in frames within frames."""
    found = [draw(MARKS), draw(MARKS)]
    for _ in range(draw(st.integers(1, 3))):
        frame = draw(FRAMES)
        line = frame.format(*found, q=shlex.quote(found[0]), m=draw(st.sampled_from(["mk1", "mk2 a", "mk3"])))
        found = [line, draw(MARKS)]
    return found[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of stubs ``mk1`` … that write down that they ran."""
    folder = tmp_path_factory.mktemp("stubs")
    stub = folder / "stub"
    stub.write_text('#!/bin/sh\nn="${0##*/}"; for a in "$@"; do n="$n|$a"; done; echo "$n" >> "$MARK_LOG"\n')
    stub.chmod(0o755)
    for number in range(1, 10):
        (folder / f"mk{number}").symlink_to(stub)
    return folder


def executed(line: str, place: Path) -> set[str]:
    """The marker commands that bash runs, with their arguments."""
    log = place / "log"
    log.write_text("")
    subprocess.run(
        [BASH, "--norc", "-c", line],
        env={"PATH": f"{place}{os.pathsep}/usr/bin{os.pathsep}/bin", "MARK_LOG": str(log)},
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return set(log.read_text().splitlines())


def lost(line: str, place: Path) -> set[str]:
    """What bash ran and the parser neither reported, word by word, nor declared to be known only when it runs."""
    script = parse(line, "/w")
    found = list(layers(script))
    told = any(inside.broken for inside in (script, *(inside for _, inside in found)))
    if told or any("known only when it runs" in confirm(item, script, (str(place),)) for item, _ in found):
        return set()
    reported = {"|".join([item.name, *(word.text for word in item.args)]) for item, _ in found}
    open_ = {item.name for item, _ in found if not all(word.static for word in item.words)}
    return {ran for ran in executed(line, place) if ran not in reported and ran.split("|")[0] not in open_}


@pytest.mark.slow
@pytest.mark.req("SHL-02")
@pytest.mark.skipif(not BASH, reason="bash is not installed")
@settings(max_examples=60, deadline=None)
@given(line=lines())
def test_the_parser_loses_no_command_that_bash_runs(place: Path, line: str) -> None:
    assert lost(line, place) == set(), line


@pytest.mark.soak
@pytest.mark.skipif(not BASH, reason="bash is not installed")
@settings(max_examples=1_500, deadline=None)
@given(line=lines())
def test_the_parser_loses_no_command_in_many_more_lines(place: Path, line: str) -> None:
    assert lost(line, place) == set(), line
