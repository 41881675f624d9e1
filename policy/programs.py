"""What programs other than the shell's own lose or change outside of the working folder: confirmed at every level (C-33)."""

import re

from .shell import Simple

_ADDRESS = r"(?:^|\s)(?:git\+)?(?:https?|ssh|git)://(?!(?:localhost|127\.))"
# Program -> what in its words, joined by blanks, must be confirmed. `.` stands for any use.
_RUNNERS = frozenset({"uvx", "uv", "pipx", "poetry", "pdm", "hatch", "rye"})
_LOOKS = re.compile(
    r"(?:--version|--help|doctor|(?:agents|config|hooks|mcp|models|policy|runtime|sessions|skills|swarm|tools|worktrees) "
    r"(?:list|show|explain|path|check|status|report|--help))(?:\s|$)(?!.*--approve)"
)
_TABLE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("pkill", "killall", "taskkill", "skill", "killall5", "xkill"), (r".|$", "it ends processes by name, also those of others")),
    **dict.fromkeys(("shred", "srm", "wipe"), (r".", "it destroys files")),
    **dict.fromkeys(("rimraf", "del-cli", "trash", "trash-put", "Remove-Item", "del", "rd"), (r".", "it deletes files or folders")),
    "gio": (r"^(?:trash|remove)", "it deletes files"),
    "crontab": (r"^(?!-l$)|$^", "it changes scheduled jobs"),
    **dict.fromkeys(("at", "batch"), (r"^(?!-l$|-V$)", "it runs commands later, unseen")),
    "systemd-run": (r".", "it runs commands elsewhere"),
    "tar": (r"--remove-f|--to-c|--checkpoint-a|--rsh|--info-s|--new-v|(?:-I|--use-c\S*)[= ](?!zstd|pigz|lz4|xz|gzip|bzip2|pbzip2)",
            "it deletes what it packs, or runs a program"),
    "sort": (r"--comp", "it runs a program"),
    "rg": (r"--pre(?:[= ]|$)|--hostname-bin", "it runs a program"),
    "openssl": (r"-engine|-provider", "it runs a program"),
    "zip": (r"(?:^|\s)-\w*m|--move|-TT|--unzip-command", "it deletes what it packs, or runs a program"),
    "7z": (r"-sdel", "it deletes what it packs"),
    "rsync": (r"--del|--remove-source|(?:(?:^|\s)-\w*e|--rsh)[= ](?!ssh\b)|--rsync-path", "rsync deletes files, or runs a program"),
    **dict.fromkeys(("dropdb", "dropuser"), (r".", "it deletes data of a database")),
    "mysqladmin": (r"\bdrop\b", "it deletes data of a database"),
    "redis-cli": (r"(?i)\bflush(?:all|db)\b", "it deletes data of a database"),
    **dict.fromkeys(("mongosh", "mongo"), (r"\b(?:drop\w*|deleteMany|remove)\(", "it deletes data of a database")),
    **dict.fromkeys(
        ("docker", "podman", "nerdctl", "docker-compose"),
        (
            r"\bprune\b|\b(?:rm|stop|kill)\b.*\$\(|\b(?:volume|network|image)s? rm\b|\bdown\b.*(?:\s-\w*v|--volumes|--rmi)|^(?:image )?push\b|\brmi\b.*-f"
            r"|--privileged|--(?:pid|net|network|ipc|userns|uts|cgroupns)[= ]host|--device|--cap-add|docker\.sock|apparmor|seccomp",
            "it deletes or publishes data of containers, or opens the machine to one",
        ),
    ),
    "kubectl": (r"^(?:.* )?(?:delete|drain|cordon|replace|taint)\b|--force", "it changes a cluster"),
    "helm": (r"^(?:uninstall|delete|rollback)", "it changes a cluster"),
    **dict.fromkeys(("terraform", "tofu", "pulumi"), (r"\bdestroy\b|-destroy|\bapply\b|\bup\b|\bstate (?:rm|push)", "it changes real infrastructure")),
    "vagrant": (r"^destroy", "it deletes a machine"),
    "aws": (r"\b(?:rm|rb|delete-\S+|terminate-\S+|remove-\S+)\b|--delete", "it deletes what is in the cloud"),
    "gsutil": (r"(?:^|\s)(?:rm|rb)\b|\brsync\b.*-d", "it deletes what is in the cloud"),
    **dict.fromkeys(("gcloud", "az", "doctl", "heroku", "flyctl", "fly"), (r"\b(?:delete|destroy|purge)\b|:destroy", "it deletes what is in the cloud")),
    "gh": (r"^(?:repo|release|secret|variable|gist|issue|ssh-key|gpg-key|cache|run|label) (?:delete|remove|archive)|^repo (?:edit|rename)"
           r"|^pr merge|-X ?(?:DELETE|PUT|PATCH)|--method ?(?:DELETE|PUT|PATCH)", "it changes what is on the server"),
    **dict.fromkeys(("cargo", "poetry", "uv", "hatch", "flit", "pdm"), (r"^(?:publish|yank|owner|login)\b", "it publishes, for everybody")),
    **dict.fromkeys(("npm", "pnpm", "yarn"),
                    (r"^(?:npm )?(?:publish|unpublish|deprecate|owner|access|adduser|login|token)\b|" + _ADDRESS,
                     "it publishes, or runs code straight from an address")),
    "twine": (r"^upload", "it publishes, for everybody"),
    "gem": (r"^(?:push|yank|owner)", "it publishes, for everybody"),
    **dict.fromkeys(("apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "brew", "snap", "apk", "flatpak"),
                    (r"\b(?:remove|purge|uninstall|autoremove|del|erase)\b", "it removes programs of the machine")),
    "dpkg": (r"-[rP]\b|--remove|--purge|--force", "it removes programs of the machine"),
    "rpm": (r"-\w*e\b|--erase|--force", "it removes programs of the machine"),
    "pacman": (r"-R", "it removes programs of the machine"),
    "systemctl": (r"\b(?:stop|disable|mask|restart|kill|edit|set-\w+|daemon-\w+)\b(?<!--user restart)", "it changes services of the machine"),
    "service": (r"\b(?:stop|restart|reload)\b", "it changes services of the machine"),
    "launchctl": (r"^(?:unload|remove|bootout|disable|load|bootstrap)", "it changes services of the machine"),
    **dict.fromkeys(
        ("mount", "umount", "swapoff", "swapon", "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "modprobe", "insmod", "rmmod", "useradd",
         "adduser", "userdel", "deluser", "usermod", "groupadd", "groupdel", "passwd", "chpasswd", "visudo", "vipw", "chattr", "setfacl",
         "setcap", "update-alternatives", "loginctl", "timedatectl", "hostnamectl", "losetup", "lvremove", "vgremove", "pvremove", "mdadm",
         "zpool", "zfs", "cryptsetup", "diskutil", "nvme", "kexec", "machinectl"),
        (r".", "it changes the machine"),
    ),
    **dict.fromkeys(("visudo", "chpasswd"), (r".|$", "it changes the machine")),
    "sysctl": (r"-w|=|-p", "it changes the machine"),
    "history": (r"-\w*[cdw]", "it changes the shell's history"),
    "fuser": (r"(?:^|\s)(?:-\w*k|--kill)", "it ends whatever uses a file or port, also processes of others"),
    "gpg": (r"--export-secret|--delete", "it hands out or deletes keys"),
    "security": (r"find-\w+-password|dump-keychain|delete", "it hands out or deletes keys"),
    **dict.fromkeys(("strace", "ltrace", "gdb", "lldb"), (r"(?:^|\s)(?:-p|--pid|attach)\b", "it takes hold of a running process")),
    **dict.fromkeys(("nc", "ncat", "netcat"), (r"(?:^|\s)(?:-\w*[ec]\b|--exec|--sh-exec|--lua-exec)", "it hands a shell to the network")),
    "socat": (r"(?i)\b(?:exec|system|shell):", "it hands a shell to the network"),
    **dict.fromkeys(("pip", "pip3", "npx", "bun", "bunx", "deno", "uvx", "pipx"), (_ADDRESS, "it runs code straight from an address")),
}  # fmt: skip

_REHEARSE = frozenset(
    {"npm", "pnpm", "cargo", "uv", "poetry", "aws", "rsync", "kubectl", "helm"}
)  # they have --dry-run


def loses(item: Simple) -> str:
    """Why this program is confirmed; empty when there is no reason."""
    pattern, why = _TABLE.get(item.name, ("", ""))
    text = " ".join(word.text for word in item.args)
    dry = item.name in _REHEARSE and any(word.text in ("--dry-run", "--dryrun") for word in item.args)
    if pattern and not dry and re.search(pattern, text):
        return why
    return _own(item) or _kills(item)


def _own(item: Simple) -> str:
    """OpenDev called by its own agent: it only looks. Anything else could start another agent, or agree to what needs a person."""
    words = [word.text for word in item.args]
    if item.name in _RUNNERS or item.name.startswith("python"):
        if "opendev" not in words:
            return ""
        words = words[words.index("opendev") + 1 :]
    elif item.name != "opendev":
        return ""
    text = re.sub(r"^--working-dir(?:=| )\S+ ?", "", " ".join(words))
    return "" if not text or _LOOKS.match(text) else "it starts another agent, or changes what agents may do"


def _kills(item: Simple) -> str:
    if item.name != "kill":
        return ""
    given = [word.text for word in item.args]
    pids = [
        text
        for n, text in enumerate(given)
        if not text.startswith("-") and given[n - 1 : n] not in (["-s"], ["-n"], ["--signal"])
    ]
    if ("-1" in given and (given.index("-1") > 0 or not pids)) or (
        pids and pids[0] in ("1",) and len(pids) == 1
    ):
        return "it ends every process of the user, or the first"
    text = " ".join(given)
    if re.search(r"\$\{?PPID", text):
        return "it ends the process that started it"
    if re.search(r"\$\(|`", text) and not re.search(r"lsof|\.pid|jobs|pgrep -P|cat ", text):
        return "which processes it ends is known only when it runs"
    return ""
