"""The sandbox against commands that really try to get out, under bubblewrap and under Landlock (SAF-04, SAF-08)."""

# pyright: reportPrivateUsage=false

import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ports import ProcessState
from opendev.tools.shell import landlock, sandbox
from opendev.tools.shell.background import BackgroundTasks
from opendev.tools.shell.places import expand, git_places, installs
from opendev.tools.shell.reap import family, kill_marked
from opendev.tools.shell.sandbox import Sandbox, Work, choose
from support.repos import git, make_repo
from support.waiting import until
from support.walls import KEY, KINDS, Walls, make_walls, skip_without

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
ESCAPES = {
    "write": "echo x >> {outside}/file",
    "create": "echo x > {outside}/new",
    "truncate": "python3 -c 'import os; os.truncate(\"{outside}/file\", 0)'",
    "delete": "rm -f {outside}/file",
    "rename": "mv {outside}/file {outside}/moved",
    "take": "mv {outside}/file here",
    "up": "echo x > ../../../outside/up",
    "link": "ln -s {outside} l && echo x >> l/file",
    "hard link": "ln {outside}/file h && echo x >> h",
    "proc": "echo x >> /proc/self/cwd/../../../outside/file",
    "root": "echo x >> /proc/self/root{outside}/file",
    "git config": "echo x >> {repo}/.git/config",
    "git -C": "git -C {repo} config core.fsmonitor 'touch {outside}/pwned'",
    "git --git-dir": "git --git-dir {repo}/.git config core.hooksPath /x",
    "own config": "git config core.editor x",
    "hook": "echo x > {repo}/.git/hooks/post-commit",
    "hooks": "mv {repo}/.git/hooks {repo}/.git/hooks2",
    "whole .git": "mv {repo}/.git {repo}/.git2",
    "head": "git -C {repo} symbolic-ref HEAD refs/heads/other",
    "another branch": "git update-ref refs/heads/main HEAD~0 && git update-ref refs/heads/new HEAD",
    "checkout": "echo x >> {repo}/a.py",
    "state": "echo x >> {state}/config/secret",
    "another worktree": "mkdir {state}/worktrees/w2",
    "mount": "mount --bind {outside} . || unshare -rm mount --bind {work} {outside}",
    "user": "echo x >> {home}/.profile",
    "device": 'python3 -c \'open("/dev/vda", "r+b")\'',
    "sysctl": "echo x > /proc/sys/kernel/core_pattern",
}
READS = (
    "cat {home}/.ssh/id_ed25519",
    "cp {home}/.ssh/id_ed25519 k; cat k",
    "ln -s {home}/.ssh s; cat s/id_ed25519",
    "ln {home}/.ssh/id_ed25519 h; cat h",
    "cat /proc/self/root{home}/.ssh/*",
    "cat /proc/{pid}/root{home}/.ssh/*",
    "tar cf - {home}/.ssh",
    "cat {home}/.netrc; dd if={home}/.netrc",
    "cat {state}/config/secret ../../config/secret",
    "tr '\\0' '\\n' < /proc/{pid}/environ",
    "grep -a KEY /proc/{pid}/mem",
)


@pytest.fixture
def marker() -> dict[str, str]:
    return {"OPENDEV_RUN": uuid.uuid4().hex, "OPENDEV_AGENT": "a1"}


@pytest.fixture(params=KINDS)
async def walls(
    request: pytest.FixtureRequest, tmp_path: Path, marker: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Walls]:
    skip_without(request.param)
    yield make_walls(tmp_path, request.param, marker, monkeypatch)
    await kill_marked(marker)


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the same user, outside, with a key in its environment."""
    with subprocess.Popen(["sleep", "60"], env={"SECRET": KEY}) as process:
        yield process
        process.kill()


@pytest.mark.req("SAF-04")
@pytest.mark.req("SAF-08")
async def test_no_command_writes_outside_of_its_worktree(walls: Walls) -> None:
    before = walls.protected()
    places = {
        "outside": walls.outside,
        "repo": walls.repo,
        "state": walls.state,
        "work": walls.work,
        "home": walls.home,
    }
    script = "\n".join(f"({text.format(**places)}) >&2; echo {name!r} $?" for name, text in ESCAPES.items())
    result = await walls.run(script)
    codes = dict(
        line.rsplit(" ", 1) for line in result.text.splitlines() if line.rsplit(" ", 1)[0] in ESCAPES
    )
    assert codes.keys() == ESCAPES.keys(), result.text
    assert [name for name, code in codes.items() if code == "0"] == [], result.text
    assert walls.protected() == before
    assert not (walls.home / ".profile").exists()
    assert git(walls.repo, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/heads/opendev/r/t-1",
    ]


@pytest.mark.req("SAF-06")
async def test_keys_state_and_the_memory_of_other_processes_are_not_read(
    walls: Walls, other: "subprocess.Popen[bytes]"
) -> None:
    for text in READS:
        result = await walls.run(text.format(home=walls.home, state=walls.state, pid=other.pid))
        assert KEY not in result.text, text


async def test_real_work_goes_on(walls: Walls) -> None:
    script = """
set -e
echo y > b.py; mkdir d; mv b.py d/; git add -A; git commit -qm work; git log --format=%s -1; git status --short
echo t > $TMPDIR/x; cat $TMPDIR/x; mktemp > /dev/null; echo c > ~/.cache/c; cat ~/.cache/c
python3 - <<'P'
import multiprocessing, socket, os, pty
print(multiprocessing.get_context("fork").Pool(2).map(abs, [-1, -2]))
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()); print("loopback")
pty.openpty(); open("/dev/null", "w").write("x"); os.mkfifo("fifo"); socket.socket(socket.AF_UNIX).bind("sock"); print("files")
P
"""
    result = await walls.run(script)
    assert result.text.split() == ["work", "t", "c", "[1,", "2]", "loopback", "files"]
    assert result.exit_code == 0
    assert git(walls.repo, "log", "-1", "--format=%s", "opendev/r/t-1").strip() == "work"
    assert git(walls.repo, "fsck", "--strict").strip() == ""


async def test_the_network_is_denied_where_that_is_set(walls: Walls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        tcp.settimeout(0)
        udp.settimeout(0)
        code = (
            "import socket\n"
            f"socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp.getsockname()[1]}))\n"
            f"socket.create_connection(('127.0.0.1', {tcp.getsockname()[1]}))\n"
        )
        (walls.work / "net.py").write_text(code)
        denied = await walls.run("python3 net.py", walls.sandbox(network="deny"))
        with pytest.raises(BlockingIOError):
            tcp.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)
        assert denied.exit_code == 1
        allowed = await walls.run("python3 net.py")
        assert allowed.exit_code == 0, allowed.text
        tcp.accept()[0].close()
        assert udp.recv(1) == b"x"


async def test_verification_reaches_no_other_process(walls: Walls, other: "subprocess.Popen[bytes]") -> None:
    attach = "python3 -c 'import ctypes,os,sys; sys.exit(ctypes.CDLL(None).ptrace(16, {0}, 0, 0) == -1)'"
    loose = await walls.run(attach.format(other.pid))
    alone = await walls.run(f"kill -9 {other.pid}; {attach.format(other.pid)}", walls.sandbox(alone=True))
    assert other.poll() is None
    assert (loose.exit_code, alone.exit_code) == (1, 1)
    left = await walls.run("sleep 66 > /dev/null 2>&1 & echo $!", walls.sandbox(alone=True))
    if walls.kind == "bubblewrap":  # it ends with its command
        await until(lambda: family(marker=walls.marker) == ())
    assert left.exit_code == 0


async def test_a_limit_ends_every_process_inside_and_survivors_are_known(walls: Walls) -> None:
    result = await walls.run("setsid sleep 61 & (sleep 62 &) ; sleep 63", total_s=0.4)
    assert (result.ended, family(marker=walls.marker)) == ("total", ())
    left = await walls.run("sleep 64 > /dev/null 2>&1 &")
    assert (left.ended, left.exit_code) == ("exit", 0)
    assert left.survivors
    assert set(left.survivors) <= set(await kill_marked(walls.marker))
    assert family(marker=walls.marker) == ()


async def test_a_background_task_has_its_terminal_and_ends_with_the_agent(
    walls: Walls, tmp_path: Path
) -> None:
    tasks = BackgroundTasks(
        root=walls.work, marker=walls.marker, base=tmp_path / "temp" / "bg", sandbox=walls.sandbox()
    )
    info = await tasks.start(
        f"test -t 1 && echo terminal; echo x > {walls.outside}/bg; sleep 65", cwd=walls.work, env=walls.env
    )
    output = Path(info.output)
    await until(lambda: b"terminal" in output.read_bytes() and b"/bg:" in output.read_bytes())
    ended = await tasks.kill(info.id)
    await tasks.close()
    assert ended.state is ProcessState.KILLED
    assert family(marker=walls.marker) == ()
    assert not (walls.outside / "bg").exists()


async def test_in_a_main_checkout_git_works_and_its_configuration_and_hooks_stay(walls: Walls) -> None:
    if walls.kind == "landlock":
        pytest.skip("Landlock cannot take back a part of a folder that it opens; docs/security.md says so")
    shutil.rmtree(walls.repo / ".git/hooks")
    box = walls.sandbox(walls.repo)
    config = (walls.repo / ".git/config").read_bytes()
    done = await walls.run(
        "echo z > z.py && git add -A && git commit -qm z && git branch b", box, cwd=walls.repo
    )
    assert done.exit_code == 0, done.text
    for text in (
        "echo x >> .git/config",
        "echo x > .git/hooks/pre-commit",
        "mv .git g",
        "rm -rf .git/config",
        "git config a.b c",
    ):
        assert (await walls.run(text, box, cwd=walls.repo)).exit_code != 0, text
    assert (walls.repo / ".git/config").read_bytes() == config
    assert list((walls.repo / ".git/hooks").iterdir()) == []
    assert git(walls.repo, "log", "-1", "--format=%s").strip() == "z"


async def test_a_project_inside_a_temporary_folder_is_no_temporary_folder(
    walls: Walls, monkeypatch: pytest.MonkeyPatch
) -> None:
    if walls.kind == "landlock":
        pytest.skip("Landlock opens temporary folders as a whole; docs/security.md says so")
    monkeypatch.setattr("opendev.tools.shell.places._TEMP", (str(walls.base),))
    before = {key: value for key, value in walls.protected().items() if not key.startswith("outside")}
    script = f"echo x >> {walls.repo}/.git/config; rm -rf {walls.repo}; rm -rf {walls.state}/config; echo {KEY} >> {walls.home}/.ssh/id_ed25519; echo x > {walls.outside}/ok"
    await walls.run(script)
    assert (walls.outside / "ok").exists()
    assert {key: value for key, value in walls.protected().items() if not key.startswith("outside")} == before


def test_a_forged_pointer_opens_no_other_repository(tmp_path: Path) -> None:
    victim = make_repo(tmp_path / "victim", {"a": "a"})
    work, forged = tmp_path / "work", tmp_path / "temp/fake/worktrees/w"
    for folder in (work, forged):
        folder.mkdir(parents=True)
    git(victim, "worktree", "add", "-q", "--detach", str(tmp_path / "real"))
    pointers = {
        "another's administration": victim / ".git/worktrees/real",
        "the repository itself": victim / ".git",
        "a folder": tmp_path,
        "a forged one": forged,
    }
    (forged / "gitdir").write_text(f"{work}/.git\n")
    (forged / "commondir").write_text(f"{victim}/.git\n")
    for what, admin in pointers.items():
        (work / ".git").write_text(f"gitdir: {admin}\n")
        assert git_places(work).write == (), what
    (work / ".git").unlink()
    (work / ".git").symlink_to(victim / ".git")
    assert git_places(work).write == ()
    assert set(git_places(tmp_path / "real").write) == {
        victim / ".git/worktrees/real",
        victim / ".git/objects",
    }


def test_places_are_named_by_home_variable_and_glob(tmp_path: Path) -> None:
    home = tmp_path / "odd [x] home*"
    for name in (".ssh", "keys-1", "keys-2"):
        (home / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(home / ".ssh")
    env = {"HOME": str(home), "KEYS": f"{home}/keys-1", "ROOT": "/", "LINK": str(tmp_path / "link")}
    assert expand(("~/.ssh", "$KEYS", "$NOT_SET/x", "$ROOT", "relative", "~/none"), env) == (
        home / ".ssh",
        home / "keys-1",
    )
    assert set(expand(("~/keys-*",), env)) == {home / "keys-1", home / "keys-2"}
    assert expand(("$LINK",), env) == (home / ".ssh",)


def test_a_set_up_may_install_where_python_lives(tmp_path: Path) -> None:
    program = tmp_path / "venv/bin/python3"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert installs({"PATH": str(program.parent)}) == (tmp_path / "venv",)
    assert installs({"PATH": str(tmp_path)}) == ()


@pytest.mark.parametrize("mode", KINDS)
def test_a_sandbox_that_was_asked_for_by_name_and_is_missing_is_an_error(
    mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "bubblewrap_fault", "bubblewrap is not installed, {}".format)
    monkeypatch.setattr(landlock, "abi", lambda: -1)
    settings = sandbox.SandboxSettings(mode=mode)  # pyright: ignore[reportArgumentType]
    with pytest.raises(OpenDevError, match="Nothing was started") as error:
        choose(settings)
    assert error.value.info.kind is ErrorKind.CONFIG
    with pytest.raises(OpenDevError):
        Sandbox(settings, Work(), env={}, home=tmp_path).argv(["true"], tmp_path)
    found = choose(sandbox.SandboxSettings())
    assert found.kind == "none"
    assert "bubblewrap is not installed" in found.why
    assert "Landlock" in found.why
    assert choose(sandbox.SandboxSettings(mode="off")).why.endswith("sandbox.mode is off.")


@pytest.mark.slow
def test_what_cannot_be_set_up_does_not_run(tmp_path: Path) -> None:
    skip_without("landlock")
    launcher = [sys.executable, "-I", "-S", landlock.__file__, "--"]
    done = subprocess.run(
        [*(launcher * 17), "/usr/bin/touch", tmp_path / "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 126  # the kernel stacks at most 16 of them
    assert "was not run" in done.stderr
    assert not (tmp_path / "x").exists()
