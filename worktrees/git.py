"""The one door to git: GitPython runs it with a scrubbed environment and a neutralised configuration.

Nothing that a repository names may run (cases T08, T10): no hook, fsmonitor, pager, editor, external diff, text conversion, filter,
custom merge driver, credential helper, transport. Every exit code is checked; a lock held by another git is retried, bounded.
"""

import os
import pwd
import re
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from .journal import KEEPER_MARK, keeper_mark, this_process

NO_OBJECT = "0" * 40
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOCK_TRIES = 8
MIN_VERSION = (2, 38)  # `merge-tree --write-tree`

_SCRUBBED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "false",
    "GIT_LFS_SKIP_SMUDGE": "1",
}
_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "true",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": "true",
    "core.quotePath": "false",
    "sequence.editor": "false",
    "gpg.program": "false",
    "log.showSignature": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "credential.helper": "",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    "protocol.file.allow": "never",
    "safe.bareRepository": "explicit",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "rerere.enabled": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "status.submoduleSummary": "false",
    "merge.renames": "true",
    "color.ui": "false",
}
# The user's own (not the repository's) settings that decide what counts as changed; none of them names a program.
_CARRIED = ("core.excludesfile", "core.autocrlf", "core.eol", "safe.directory")
# These read no file contents, so no filter or merge driver can run: the look-up of drivers is saved.
_NO_DRIVERS = frozenset(
    {"config", "rev-parse", "for-each-ref", "update-ref", "symbolic-ref", "version", "merge-base"}
)
_REF_WRITERS = frozenset({"update-ref", "symbolic-ref"})
_CONFIGURED_HOOKS = (
    2,
    54,
)  # since then a hook can stand in the configuration, which core.hooksPath does not turn off
_LOCKED = re.compile(
    r"Unable to create '[^']*\.lock': File exists|could not lock config file|Another git process"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What git answered; ``out`` as it came."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """The output without surrounding white space."""
        return os.fsdecode(self.out).strip()

    @property
    def fields(self) -> tuple[str, ...]:
        """The NUL-separated fields of a ``-z`` output, undecodable bytes as surrogates."""
        return tuple(os.fsdecode(part) for part in self.out.split(b"\0") if part)


@dataclass(frozen=True, slots=True)
class Git:
    """git in one folder. With ``git_dir`` and ``work_tree`` it believes no ``.git`` file that an agent could have re-pointed."""

    folder: Path
    env: Mapping[str, str]
    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    config: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 300.0
    own: bool = (
        False  # a repository that only OpenDev writes to: no look-up of programs that others have configured
    )

    def run(
        self,
        *args: str,
        ok: Collection[int] = (0,),
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> Reply:
        """Run ``git args``. Raises ``OpenDevError`` (git; time-out) for an exit code that is not in ``ok``."""
        config = dict(_CONFIG) | (dict(self._drivers()) if self._can_run_others(args[0]) else {})
        reply = self._retried(args, [*config.items(), *self.config], stdin, env or {})
        if reply.code in ok:
            return reply
        detail = reply.err.strip()[-800:] or os.fsdecode(reply.out).strip()[-800:]
        raise OpenDevError(
            ErrorKind.GIT,
            f"`git {' '.join(args)[:200]}` failed in {self.folder} with exit code {reply.code}: {detail}",
        )

    def line(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """The one line that ``git args`` prints."""
        return self.run(*args, env=env).text

    def test(self, *args: str) -> bool:
        """A question that git answers by exit code 0 or 1."""
        return self.run(*args, ok=(0, 1)).code == 0

    def resolve(self, name: str) -> str:
        """The commit that ``name`` names, or an empty text."""
        reply = self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128)
        )
        return reply.text if reply.code == 0 else ""

    def diff_names(self, old: str, new: str, *flags: str) -> tuple[str, ...]:
        """The fields of ``diff-tree -z`` between two trees; no rename detection, no program of the repository's."""
        return self.run(
            "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", *flags, old, new, "--"
        ).fields

    def drivers(self) -> tuple[str, ...]:
        """Names of the filters and merge drivers that the repository's configuration defines; none of them is run."""
        return tuple(sorted({f"{kind}.{name}" for kind, name, _ in self._driver_keys() if kind != "hook"}))

    def _can_run_others(self, command: str) -> bool:
        """Whether what the repository configures could run in this command."""
        if self.own:
            return False
        if command in _REF_WRITERS:
            return _version(self.env.get("PATH") or DEFAULT_PATH) >= _CONFIGURED_HOOKS
        return command not in _NO_DRIVERS

    def _driver_keys(self) -> Iterator[tuple[str, str, str]]:
        args = ("config", "--includes", "-z", "--name-only", "--get-regexp", r"^(filter|merge|hook)\..*\.")
        reply = self._once(args, list(_CONFIG.items()), b"", {})
        if reply.code not in (0, 1, 128):  # 1: none; 128: no repository here yet, so no driver either
            raise OpenDevError(
                ErrorKind.GIT, f"The git configuration of {self.folder} cannot be read: {reply.err}"
            )
        for key in reply.fields:
            kind, _, rest = key.partition(".")
            name, _, variable = rest.rpartition(".")
            yield kind, name, variable

    def _drivers(self) -> Iterator[tuple[str, str]]:
        """Settings that make every filter a pass-through, every merge driver the built-in text merge, and turn hooks off."""
        for kind, name, _ in self._driver_keys():
            if kind == "hook":
                yield from ((f"hook.{name}.enabled", "false"), (f"hook.{name}.command", "true"))
            elif kind == "merge":
                yield f"merge.{name}.driver", "git merge-file -q %A %O %B"
            else:
                yield from ((f"filter.{name}.{variable}", "") for variable in ("clean", "smudge", "process"))
                yield f"filter.{name}.required", "false"

    def _retried(
        self, args: tuple[str, ...], config: list[tuple[str, str]], stdin: bytes, env: Mapping[str, str]
    ) -> Reply:
        for attempt in range(LOCK_TRIES):
            reply = self._once(args, config, stdin, env)
            if reply.code == 0 or not _LOCKED.search(reply.err) or attempt == LOCK_TRIES - 1:
                return reply
            threading.Event().wait(min(1.0, 0.05 * 2**attempt))
        raise AssertionError("unreachable")

    def _once(
        self, args: tuple[str, ...], config: list[tuple[str, str]], stdin: bytes, env: Mapping[str, str]
    ) -> Reply:
        if not self.folder.is_dir():
            raise OpenDevError(
                ErrorKind.GIT, f"The folder {self.folder} does not exist, so git cannot run in it."
            )
        variables = self._environment(config) | dict(env)
        limit = shutil.which("timeout", path=variables["PATH"])
        env_program = (
            shutil.which("env", path=f"{variables['PATH']}{os.pathsep}{DEFAULT_PATH}") or "/usr/bin/env"
        )
        # `env -i`, because GitPython always adds this process's own environment; `timeout` ends git by SIGTERM, so that it takes its
        # lock files with it, and gives it a process group of its own, so that Ctrl-C does not cut it in the middle.
        guard = [limit, "--kill-after=5", f"{self.timeout_s:g}"] if limit else []
        command = [
            env_program,
            "-i",
            *(f"{k}={v}" for k, v in variables.items()),
            *guard,
            "git",
            "-C",
            str(self.folder),
            *args,
        ]
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            code, out, err = _gitpython(self.folder).execute(
                command,
                istream=source,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=None if limit else self.timeout_s,
                shell=False,
            )
        if code == 127:
            raise OpenDevError(
                ErrorKind.INFRA, f"git could not be started: {err}", "Install git 2.38 or newer."
            )
        if code in (124, 137) or err.startswith("Timeout: the command"):
            raise OpenDevError(
                ErrorKind.TIMEOUT,
                f"`git {' '.join(args)[:200]}` in {self.folder} took more than {self.timeout_s:g} s.",
            )
        return Reply(code, out, err)

    def _environment(self, config: list[tuple[str, str]]) -> dict[str, str]:
        variables = {
            "PATH": self.env.get("PATH") or DEFAULT_PATH,
            "HOME": home_of(self.env),
            **{key: self.env[key] for key in ("TMPDIR", "XDG_CONFIG_HOME") if key in self.env},
            **_SCRUBBED,
            KEEPER_MARK: keeper_mark(this_process()),
            "GIT_CONFIG_COUNT": str(len(config)),
        }
        for number, (key, value) in enumerate(config):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        places = (
            ("GIT_DIR", self.git_dir),
            ("GIT_WORK_TREE", self.work_tree),
            ("GIT_INDEX_FILE", self.index),
        )
        return variables | {key: str(value) for key, value in places if value is not None}


def _gitpython(folder: Path):  # noqa: ANN202  # the type lives behind the lazy import
    try:
        from git.cmd import Git as Runner
    except ImportError as error:
        raise OpenDevError(
            ErrorKind.INFRA,
            "git could not be started: it is not installed, or not on PATH.",
            "Install git 2.38 or newer.",
        ) from error
    return Runner(str(folder))


def home_of(env: Mapping[str, str]) -> str:
    """The user's home: ``HOME`` of ``env``, else the entry of the user database."""
    return env.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir


def user_config(env: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The user's global settings that OpenDev honours: who they are and what counts as changed. Reading runs nothing."""
    command = ("config", "--global", "--includes", "-z", "--list")
    found: dict[str, tuple[str, ...]] = {}
    for place in _global_files(env):
        reply = Git(Path("/"), env).run(*command, ok=(0, 1, 128), env={"GIT_CONFIG_GLOBAL": str(place)})
        for entry in reply.fields if reply.code == 0 else ():
            key, _, value = entry.partition("\n")
            if key in ("user.name", "user.email", *_CARRIED):
                found[key] = (*found.get(key, ()), value)
    return found


def _global_files(env: Mapping[str, str]) -> tuple[Path, ...]:
    home = Path(home_of(env))
    named = env.get("GIT_CONFIG_GLOBAL")
    if named is not None:
        return (Path(named),) if named and Path(named).is_file() else ()
    xdg = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    return tuple(path for path in (xdg, home / ".gitconfig") if path.is_file())


def carried(settings: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, str], ...]:
    """The part of ``user_config`` that is handed to every git call."""
    return tuple((key, value) for key in _CARRIED for value in settings.get(key, ()))


def version(env: Mapping[str, str]) -> tuple[int, ...]:
    """The version of the git that is found on ``PATH``."""
    words = Git(Path("/"), env).line("version").split()
    return tuple(int(part) for part in re.findall(r"\d+", words[2])[:3])


@lru_cache(maxsize=8)
def _version(path: str) -> tuple[int, ...]:
    return version({"PATH": path})


def show(path: str) -> str:
    """A path for people and reports: bytes that are no UTF-8 become ``\\xNN``."""
    return os.fsencode(path).decode(errors="backslashreplace")
