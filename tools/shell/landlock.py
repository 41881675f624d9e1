"""Stand-alone launcher: gives up rights by Landlock, capabilities and seccomp, then becomes the command it was given (SAF-08).

Run by path with ``python -I -S``; standard library only. ``--read P``, ``--write P``, ``--hide P`` (any number), ``--alone`` (no signals to
processes outside), ``--no-net``, then ``--`` and the command. A step that fails ends it with exit code 126: nothing runs unconfined.
"""

import contextlib
import ctypes
import os
import struct
import sys

MIN_ABI = 3  # Linux 6.2: before it, truncating a file was not covered
# Of each machine: its audit architecture and the numbers of the calls socket and io_uring_setup.
MACHINES = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_ALL = (1 << 15) - 1  # of ABI 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL & ~_MAKE_DEVICES
_OF_A_FILE = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE
_TCP = 3  # bind and connect, from ABI 4
_SCOPED = 3  # abstract sockets and signals, from ABI 6
_NO_NEW_PRIVS, _SET_SECCOMP, _CAPBSET_DROP = 38, 22, 24
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service: what root keeps
_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10))
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version of Landlock that the kernel offers; 0 or less when there is none."""
    return _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))


def main(argv: list[str]) -> None:
    """Confine this process and replace it by the command."""
    at = argv.index("--")
    options, command = argv[:at], argv[at + 1 :]
    try:
        _confine(options)
        os.execv(command[0], command)  # noqa: S606 - the command line is a shell's already
    except OSError as error:
        os.write(2, f"opendev: the sandbox could not be set up, the command was not run: {error}\n".encode())
        os._exit(126)


def _confine(options: list[str]) -> None:
    places: dict[str, list[str]] = {"--read": [], "--write": [], "--hide": []}
    for name, value in zip(options, options[1:], strict=False):  # noqa: RUF007 - an import less
        if name in places:
            places[name].append(value)
    no_net, version = "--no-net" in options, abi()
    net = _TCP if no_net and version >= 4 else 0
    scoped = _SCOPED if "--alone" in options and version >= 6 else 0
    attributes = struct.pack("QQQ", _ALL, net, scoped)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    _allow_reading(rules, "/", frozenset(places["--hide"]))
    for path in places["--read"]:
        _allow(rules, path, _READ)
    for path in places["--write"]:
        _allow(rules, path, _READ | _WRITE)
    for number in range(_LAST_CAPABILITY + 1):
        if number not in _KEPT_CAPABILITIES:
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)  # fails for all but root, who alone needs it
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(_RESTRICT_SELF, rules, ctypes.c_uint(0))
    os.close(rules)
    if no_net:
        _forbid_sockets()


def _call(number: int, *args: object) -> int:
    result = _libc.syscall(number, *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _allow_reading(rules: int, path: str, hidden: frozenset[str]) -> None:
    """Landlock only ever adds rights: what is hidden is left out by naming everything beside it."""
    if not any(one == path or one.startswith(path.rstrip("/") + "/") for one in hidden):
        _allow(rules, path, _READ)
        return
    if path in hidden:
        return
    _allow(rules, path, _READ_DIR)
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if not entry.is_symlink():  # what it leads to has a rule of its own
                _allow_reading(rules, entry.path, hidden)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not to be reached anyway: it gets no right
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs 3 ms of each command
            rights &= _OF_A_FILE
        if rights:
            _call(_ADD_RULE, rules, ctypes.c_uint(1), struct.pack("=Qi", rights, handle), ctypes.c_uint(0))
    finally:
        os.close(handle)


def _forbid_sockets() -> None:
    """No new internet socket of any kind (Landlock knows TCP only), by a seccomp filter."""
    audit, socket, io_uring = MACHINES[os.uname().machine]
    allow, refuse = 0x7FFF0000, 0x00050000 | 13  # EACCES

    def load(offset: int) -> tuple[int, int, int, int]:
        return (0x20, 0, 0, offset)

    def equal(value: int, then: int, other: int) -> tuple[int, int, int, int]:
        return (0x15, then, other, value)

    program = [
        load(4),
        equal(audit, 0, 10),
        load(0),
        (0x35, 8, 0, 0x40000000),  # another numbering of the calls (x32)
        equal(io_uring, 7, 0),  # it could open sockets without the call
        equal(socket, 0, 5),
        load(16),  # the address family
        equal(2, 4, 0),
        equal(10, 3, 0),
        equal(17, 2, 0),
        equal(40, 1, 0),
        (0x06, 0, 0, allow),
        (0x06, 0, 0, refuse),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    if _libc.prctl(_SET_SECCOMP, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    main(sys.argv[1:])
