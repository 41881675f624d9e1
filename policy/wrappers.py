"""Programs that start another program: which words are theirs, and where the other command begins (S12)."""

import re
from dataclasses import replace

from .shell import Simple
from .words import Word, names

# Words of the shell's grammar where the parser takes them for a program (`! { rm x; }`).
_GRAMMAR = names("{ } ! if then else elif fi while until do done case in esac")
# Wrapper -> its options that take a value in the next word, then the number of its own operands before the inner command.
_TABLE: dict[str, tuple[str, int]] = {
    "env": ("-u --unset -C --chdir -S --split-string", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p --class --classdata", 0),
    "timeout": ("-s --signal -k --kill-after", 1),
    "gtimeout": ("-s --signal -k --kill-after", 1),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "xargs": ("-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file", 0),
    "time": ("-f -o --format --output", 0),
    "exec": ("-a", 0),
    "sudo": ("-u -g -h -p -C -D -R -T -U --user --group --chdir", 0),
    "doas": ("-u -C", 0),
    "runuser": ("-u --user -g -G", 0),
    "gosu": ("", 1),
    "su-exec": ("", 1),
    "chroot": ("--userspec --groups", 1),
    "nsenter": ("-t --target", 0),
    "setpriv": ("--reuid --regid --groups --inh-caps --bounding-set", 0),
    "flock": ("-w -E --timeout", 1),
    "strace": ("-e -o -p -s -u", 0),
    "ltrace": ("-e -o -p -s -u -l -n", 0),
    "watch": ("-n --interval", 0),
    "ssh": ("-p -i -l -o -F -J -L -R -D -b -c -e -m -S -W -w -E -B -I -O -Q", 1),
    "parallel": ("-j --jobs -a --arg-file -n -N -I --timeout --joblog --colsep", 0),
    "unshare": ("--map-user --map-group -S -G -R -w --root --wd", 0),
    "systemd-run": ("-p --property -u --unit -E --setenv --slice -d --working-directory -M --uid --gid", 0),
    "setarch": ("", 1),
    "taskset": ("", 1),
    "chrt": ("-T -P -D", 1),
    "prlimit": ("", 0),
    "numactl": ("-C -m -N -i", 0),
    "bwrap": ("--bind --ro-bind --dev-bind --setenv --symlink", 0),
    "faketime": ("-f", 1),
    "runcon": ("-t -u -r -l", 1),
    "cgexec": ("-g", 0),
    "arch": ("-arch -e", 0),
    "retry": ("-t -d --times --delay", 0),
    "hyperfine": ("-w -r -n -p --warmup --runs --prepare --export-json", 0),
    "dotenv": ("-f --file -e -p", 0),
    "entr": ("", 0),
    "watchexec": ("-e -w -i -f -d --exts --watch --ignore --filter --debounce", 0),
    "nodemon": ("-e -w -i --ext --watch --ignore --delay", 0),
    "concurrently": ("-n -c --names", 0),
    "npx": ("-p --package", 0),
    "bunx": ("", 0),
    "uvx": ("--from --with -p --python", 0),
    "pipx": ("--spec --python", 1),
    "screen": ("-S -t -c", 0),
    "xvfb-run": ("-n -s -e -f --server-args", 0),
    "tini": ("-p -e", 0),
    "rlwrap": ("-f -H", 0),
    "firejail": ("", 0),
    **dict.fromkeys(_GRAMMAR, ("", 0)),
    **dict.fromkeys(
        names(
            "nohup setsid command builtin busybox toybox coproc caffeinate linux32 linux64 fakeroot proot unbuffer torsocks torify "
            "proxychains proxychains4 catchsegv dbus-launch dbus-run-session ssh-agent chronic dumb-init cross-env valgrind sg ts"
        ),
        ("", 0),
    ),
}
_ASSIGNING = _GRAMMAR | {
    "env",
    "sudo",
    "cross-env",
    "time",
    "coproc",
}  # assignments may stand before the inner command
_ENGINE = {
    "run": (
        "-v --volume --mount -w --workdir -e --env --env-file -u --user -p --publish --name --network --net --entrypoint -l --label -h "
        "--hostname --platform --memory -m --cpus --gpus --device --pull --restart --add-host --ulimit --tmpfs --cap-add --cap-drop "
        "--security-opt --ipc --pid --userns --shm-size --link --log-driver",
        1,
    ),
    "exec": ("-e --env -u --user -w --workdir --env-file --index", 1),
}
# The same for a program's subcommand.
_SUBCOMMANDS: dict[str, dict[str, tuple[str, int]]] = {
    **{name: {**_ENGINE, "create": _ENGINE["run"]} for name in ("docker", "podman", "nerdctl")},
    "docker-compose": _ENGINE,
    "kubectl": {"exec": ("-c --container -n --namespace", 1), "run": ("--image -n --namespace", 1)},
    "uv": {"run": ("--with -p --python --extra --group --directory --project --env-file --package", 0)},
    **{name: {"run": ("-p --python -e", 0)} for name in ("poetry", "pipenv", "hatch", "pdm", "rye", "op", "doppler", "infisical")},
    **{name: {"run": ("-n -p --name --prefix --cwd", 0)} for name in ("conda", "mamba", "micromamba")},
    **{name: {"exec": ("-c --call -p --package", 0), "dlx": ("", 0)} for name in ("npm", "yarn", "pnpm")},
    "bundle": {"exec": ("", 0)},
    "mise": {"exec": ("", 0), "x": ("", 0)},
    "asdf": {"exec": ("", 0)},
    "direnv": {"exec": ("", 1)},
    "aws-vault": {"exec": ("-d --duration", 1)},
    "nix": {"develop": ("", 0), "shell": ("", 0)},
    "perf": {"stat": ("-e -r -o", 0), "record": ("-e -o -F -g", 0)},
    "gdb": {"--args": ("", 0)},
    "rtx": {"exec": ("", 0)},
    "cargo": {"watch": ("-w -d -i", 0)},
}  # fmt: skip
_JOINED = frozenset(
    {"watch", "ssh", "parallel", "hyperfine", "concurrently", "screen"}
)  # words make a script, not an argv
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose", "kubectl"})
# What an unknown program may start with its own arguments, and programs of which the words are just words.
_SUSPECT = re.compile(
    r"(?:.*/)?(?:rm|find|dd|shred|wipefs|chmod|chown|rsync|mkfs(?:\.\w+)?|mv|truncate|rimraf)"
)
_WORDS_ONLY = names(
    "echo printf : true false test [ [[ grep egrep fgrep rg ag ack sed awk gawk git man which type whereis ls cat head tail rm cp mv touch "
    "mkdir apropos whatis help pytest find fd jq export declare local alias unset hash complete compgen ln tar zip chmod chown gh hub "
    "apt apt-get brew dnf yum apk pacman pip pip3 npm yarn pnpm cargo go docker podman kubectl dpkg code less more vim nano tldr info "
    "rsync wc sort diff read for case set aws gsutil gcloud"
)  # fmt: skip
WRAPPERS = frozenset(_TABLE) | frozenset(_SUBCOMMANDS)


def joined(item: Simple) -> str:
    """The script that this wrapper makes of its words; empty when it starts an argv or nothing."""
    if item.name not in _JOINED:
        return ""
    spec = _TABLE[item.name]
    _, rest = _after_options(item.args, *spec, item.name)
    if item.name in ("hyperfine", "concurrently", "parallel"):
        texts = [word.text for word in rest if word.text not in (":::", "::::", ":::+")]
        cut = next((n for n, word in enumerate(rest) if word.text == ":::"), len(rest))
        command = " ".join(word.text for word in rest[:cut])
        given = [word.text for word in rest[cut + 1 :]]
        if item.name != "parallel":
            return "\n".join(texts)
        lines = [
            command.replace("{}", text) if "{}" in command else f"{command} {text}".strip() for text in given
        ]
        return "\n".join(lines or [command])
    return " ".join(word.text for word in rest)


def inner(item: Simple) -> Simple | None:
    """The command that ``item`` starts as an argv; None when it starts none."""
    name = item.name
    if name in _JOINED or (
        name == "command" and item.args and re.fullmatch(r"-[pvV]*[vV][pvV]*", item.args[0].text)
    ):
        return None
    if name in _TABLE:
        return _peeled(item, item.args, _TABLE[name])
    known = _SUBCOMMANDS.get(name)
    if known is not None:
        for number, word in enumerate(item.args):
            if word.text in known:
                found = _peeled(item, item.args[number + 1 :], known[word.text])
                return found and (replace(found, cwd=None) if name in _CONTAINERS else found)
    if name and name not in _WORDS_ONLY:
        for number, word in enumerate(item.args):
            if word.static and not word.glob and _SUSPECT.fullmatch(word.text):
                return replace(item, words=item.args[number:])
    return None


def _peeled(item: Simple, args: tuple[Word, ...], spec: tuple[str, int]) -> Simple | None:
    assignments, rest = _after_options(args, *spec, item.name)
    if not rest:
        return None
    cwd = item.cwd
    if item.name == "env":
        moved = _value(args, "-C", "--chdir")
        cwd = moved if moved.startswith("/") else cwd if not moved else None
    return replace(item, words=rest, assignments=(*item.assignments, *assignments), cwd=cwd)


def _value(args: tuple[Word, ...], short: str, long: str) -> str:
    for number, word in enumerate(args):
        if word.text.startswith(f"{long}="):
            return word.text.partition("=")[2]
        if word.text in (short, long) and number + 1 < len(args):
            return args[number + 1].text
    return ""


def _after_options(
    args: tuple[Word, ...], values: str, operands: int, name: str
) -> tuple[list[tuple[str, Word]], tuple[Word, ...]]:
    """The assignments of ``env`` and the words of the inner command."""
    taking = values.split()
    assignments: list[tuple[str, Word]] = []
    words = list(args)
    while words:
        text = words[0].text
        if text.startswith("-"):
            del words[: 2 if text in taking else 1]
        elif name in _ASSIGNING and (found := re.match(r"([A-Za-z_]\w*)=(.*)", text, re.DOTALL)):
            assignments.append((found[1], Word(found[2], words[0].static)))
            del words[0]
        elif operands:
            operands -= 1
            del words[0]
        else:
            break
    if words and words[0].text == "--":
        del words[0]
    return assignments, tuple(words)
