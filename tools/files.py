"""Bytes of files: what may be read as text, how it is written back byte for byte, and what an agent has seen."""

import errno
import hashlib
import os
import posixpath
import secrets
import stat
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.ports import Operations
from ..core.tool import ToolContext
from ..policy.paths import confine, relative
from ..policy.secrets import secrets_of
from .held import held

MAX_BYTES = 20_000_000  # larger files are for commands, not for edits
MAX_SEEN = 10_000
_DOUBLE_BYTE = ("cp932", "gb18030", "big5hkscs", "cp949")
_MAGIC = {
    b"\x89PNG": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"%PDF": "PDF document",
    b"PK\x03\x04": "ZIP archive",
    b"\x1f\x8b": "gzip data",
    b"\x7fELF": "ELF program",
    b"SQLite format 3": "SQLite database",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A file a tool may touch: its real path, its root-relative name (absolute in the scratch folder)."""

    path: Path
    name: str
    in_root: bool


def place(file_path: str, ctx: ToolContext) -> Place:
    """Where ``file_path`` leads, to be read (FIL-15).

    Raises:
        OpenDevError: scope outside of root and scratch folder; denied for a file of secrets, under whatever name (T04, T18).
    """
    found = _place(file_path, ctx, follow=True)
    if secrets_of(ctx.deny_read).holds(ctx.root / file_path, ctx.root):
        raise OpenDevError(
            ErrorKind.DENIED,
            f"{file_path} is not read: files like it hold secrets (setting deny_read).",
            "Work without its content; what it must hold can be named without the values.",
        )
    return found


def _place(file_path: str, ctx: ToolContext, *, follow: bool) -> Place:
    path = confine(file_path, ctx.root, ctx.own_places, follow=follow)
    return Place(path, relative(path, ctx.root), path.is_relative_to(ctx.root.resolve()))


def writable_place(file_path: str, ctx: ToolContext, *, follow: bool = True) -> Place:
    """Where ``file_path`` leads, to be written: the task's scope allows it at the moment of execution (SWM-05)."""
    found = _place(file_path, ctx, follow=follow)
    if found.in_root:
        require_scope(found.name, ctx)
    return found


def require_scope(name: str, ctx: ToolContext) -> None:
    """Raise ``OpenDevError`` (scope) when the task may not write the root-relative path ``name``."""
    if not ctx.scope.allows(name):
        allowed = ", ".join(ctx.scope.may) or "everything"
        avoid = f", except {', '.join(ctx.scope.avoid)}" if ctx.scope.avoid else ""
        raise OpenDevError(
            ErrorKind.SCOPE,
            f"{name} is outside of what this task may write ({allowed}{avoid}). Nothing was written.",
            "Work within the scope, or report that the task needs this file.",
        )


def lock_key(file_path: str) -> str:
    """The lock of a file's writers: two calls with the same key never run at once."""
    return f"file:{posixpath.normpath(file_path)}"


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text without its byte-order mark. ``foreign``: bytes that are not UTF-8 stand as lone surrogates."""

    text: str
    codec: str
    mark: bytes = b""
    foreign: bool = False
    double_byte: bool = False  # some double-byte codec reads the whole file


def decode(data: bytes, name: str) -> Text:
    """Text that ``encode`` turns back into the same bytes.

    UTF-8 and UTF-16 (with mark) are read as such; bytes of any other encoding are carried along unread.

    Raises:
        OpenDevError: ``TOOL``; the file is binary, with what it seems to be (FIL-02).
    """
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark) and not data.startswith(b"\xff\xfe\x00\x00"):
            try:
                return Text(data[len(mark) :].decode(codec), codec, mark)
            except UnicodeDecodeError as error:
                raise _binary(data, name, f"it starts like {codec} text but is damaged") from error
    kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
    if kind or b"\0" in data:
        raise _binary(data, name, kind or "it holds NUL bytes")
    try:
        return Text(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in data[:8192])
        if control > len(data[:8192]) // 20:
            raise _binary(data, name, "it holds control bytes") from None
        text = data.decode("utf-8", "surrogateescape")
        return Text(text, "utf-8", foreign=True, double_byte=any(_reads(data, c) for c in _DOUBLE_BYTE))


def encode(before: Text, text: str, name: str) -> bytes:
    """``text`` as bytes in the encoding of ``before``.

    Raises:
        OpenDevError: ``TOOL``; the text holds signs that the file's encoding cannot hold, or new signs beyond ASCII
            for a file whose encoding is unknown.
    """
    if before.foreign and _strangers(text) - _strangers(before.text):
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{name} is not UTF-8 and its encoding is unknown: characters beyond ASCII cannot be written into it."
            " Nothing was written.",
            "Use ASCII only in new text for this file, or convert the file first.",
        )
    try:
        return before.mark + text.encode(before.codec, "surrogateescape" if before.foreign else "strict")
    except UnicodeEncodeError as error:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"The new text for {name} holds a character that {before.codec} cannot encode"
            f" (U+{ord(text[error.start]):04X}). Nothing was written.",
        ) from error


def splits_character(before: Text, offset: int) -> bool:
    """Whether ``offset`` may lie inside a double-byte character of an unknown encoding (0x5C in Shift_JIS)."""
    if not before.double_byte or not 0 < offset < len(before.text):
        return False
    run = 0
    while run < offset and 0xDC80 <= ord(before.text[offset - run - 1]) <= 0xDCFF:
        run += 1
    return run % 2 == 1 and "0" <= before.text[offset] <= "~"


def _strangers(text: str) -> set[str]:
    return {sign for sign in set(text) if ord(sign) > 127 and not 0xDC80 <= ord(sign) <= 0xDCFF}


def _reads(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _binary(data: bytes, name: str, what: str) -> OpenDevError:
    return OpenDevError(
        ErrorKind.TOOL,
        f"{name} is a binary file ({what}; {len(data):,} bytes); it cannot be read or edited as text.",
        "Use a command for binary data.",
    )


def read_bytes(path: Path, name: str) -> bytes:
    """The bytes of a regular file of at most 20 MB; pipes and devices are never opened.

    Raises:
        OpenDevError: ``NOT_FOUND`` or ``TOOL``, naming the file.
    """
    try:
        with held(path.parent) as folder:
            _check_regular(os.stat(path.name, dir_fd=folder, follow_symlinks=False), name)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(path.name, flags, dir_fd=folder), "rb") as file:
                _check_regular(os.fstat(file.fileno()), name)
                return file.read()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise OpenDevError(
            ErrorKind.NOT_FOUND, f"{name} does not exist.", "Use list_files or search to find the right path."
        ) from error
    except OSError as error:
        raise os_failure("read", name, error) from error


def _check_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OpenDevError(ErrorKind.TOOL, f"{name} is a directory.", "Use list_files to see what it holds.")
    if not stat.S_ISREG(status.st_mode):
        raise OpenDevError(ErrorKind.TOOL, f"{name} is not a regular file (a pipe, socket or device).")
    if status.st_size > MAX_BYTES:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{name} is too large: {status.st_size:,} bytes, the limit is {MAX_BYTES:,}.",
            "Use search, or a command that prints the part you need.",
        )


def os_failure(verb: str, name: str, error: OSError) -> OpenDevError:
    """An error of the operating system as a sentence."""
    reason = "too many links, one leading to another" if error.errno == errno.ELOOP else error.strerror
    return OpenDevError(ErrorKind.TOOL, f"Cannot {verb} {name}: {reason or error}.")


@dataclass(frozen=True, slots=True)
class Write:
    """``after`` replaces ``before``; ``before`` None creates the file."""

    path: Path  # real: no link
    name: str
    before: bytes | None
    after: bytes


def write_bytes_atomic(change: Write, log: Operations | None) -> tuple[str, ...]:
    """``write_all`` for one file."""
    return write_all((change,), log)


def write_all(changes: Sequence[Write], log: Operations | None = None) -> tuple[str, ...]:
    """Write all of the files or none: staged beside their targets, then renamed; mode and owner are kept.

    The names of files that had other hard links are returned: those links keep the old content. ``log`` is told what was written.

    Raises:
        OpenDevError: ``TOOL`` when a file is read-only, changed meanwhile, exists already, or cannot be written.
    """
    with ExitStack() as stack:
        targets = [_Target(change, _hold(change, stack)) for change in changes]
        linked = tuple(target.change.name for target in targets if _check(target) > 1)
        for target in targets:
            _stage(target, stack)
        for index, target in enumerate(targets):
            try:
                _commit(target)
            except BaseException:
                for earlier in reversed(targets[:index]):
                    _take_back(earlier)
                raise
    if log is not None:
        for change in changes:
            log.note(change.path, change.before, change.after)
    return linked


@dataclass(frozen=True, slots=True)
class _Target:
    """A change, the folder of its file, held open, and the name of its staged content in there."""

    change: Write
    folder: int
    temporary: str = field(default_factory=lambda: f".opendev-{secrets.token_hex(8)}.tmp")

    def status(self) -> os.stat_result:
        return os.stat(self.change.path.name, dir_fd=self.folder, follow_symlinks=False)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.folder)


def _hold(change: Write, stack: ExitStack) -> int:
    try:
        return stack.enter_context(held(change.path.parent))
    except OSError as error:
        raise os_failure("write", change.name, error) from error


def _check(target: _Target) -> int:
    """The number of hard links; raises when the file may not be written. The mode counts, for root too."""
    change = target.change
    if change.before is None:
        return 1
    try:
        status = target.status()
    except OSError as error:
        raise os_failure("write", change.name, error) from error
    if not status.st_mode & 0o222:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{change.name} is read-only (mode {stat.S_IMODE(status.st_mode):04o}); permission to write is denied."
            " Nothing was written.",
            "Leave it as it is, or ask the user to make it writable.",
        )
    return status.st_nlink


def _stage(target: _Target, stack: ExitStack) -> None:
    change = target.change
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(target.temporary, flags, 0o666, dir_fd=target.folder)
        stack.callback(target.remove, target.temporary)
        with os.fdopen(handle, "wb") as file:
            if change.before is not None:
                _copy_rights(target.status(), handle)
            file.write(change.after)
            file.flush()
            os.fsync(handle)
    except OSError as error:
        raise os_failure("write", change.name, error) from error


def _copy_rights(status: os.stat_result, handle: int) -> None:
    mine = os.fstat(handle)
    if (status.st_uid, status.st_gid) != (mine.st_uid, mine.st_gid):
        os.chown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _commit(target: _Target) -> None:
    """Put the staged file in place, unless the target is no longer what the change was made from."""
    change, name = target.change, target.change.path.name
    at = {"src_dir_fd": target.folder, "dst_dir_fd": target.folder}
    try:
        if change.before is None:
            os.link(target.temporary, name, **at, follow_symlinks=False)
        elif read_bytes(change.path, change.name) != change.before:
            raise OpenDevError(
                ErrorKind.CONFLICT,
                f"{change.name} changed while it was being edited. Nothing was written.",
                "Read it again and redo the edit.",
            )
        else:
            os.rename(target.temporary, name, **at)  # noqa: PTH104 - Path knows no dir_fd
    except FileExistsError as error:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{change.name} exists already. Nothing was written.",
            "Use edit_file to change it.",
        ) from error
    except OSError as error:
        raise os_failure("write", change.name, error) from error


def _take_back(target: _Target) -> None:
    change = target.change
    if change.before is None:
        target.remove(change.path.name)
    else:
        write_all((Write(change.path, change.name, change.after, change.before),))


class SeenHashes:
    """Content hashes of the files an agent has read or written (FIL-04); bounded, the oldest are forgotten.

    A hash, not a time: a touched file is not stale, a changed one is, whatever the clock says.
    """

    def __init__(self, limit: int = MAX_SEEN) -> None:
        self._seen: OrderedDict[Path, bytes] = OrderedDict()
        self._limit = limit

    def record(self, path: Path, content: bytes) -> None:
        """The agent knows this content now."""
        self._seen[path] = hashlib.sha256(content).digest()
        self._seen.move_to_end(path)
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)

    def assert_fresh(self, path: Path, content: bytes) -> None:
        """Raise ``OpenDevError`` (conflict) when the agent saw other content than ``content``; an unseen file passes."""
        seen = self._seen.get(path)
        if seen is not None and seen != hashlib.sha256(content).digest():
            raise OpenDevError(
                ErrorKind.CONFLICT,
                f"{path.name} has changed since you read it. Nothing was written.",
                "Read it again with read_file, then redo the edit on its present content.",
            )
