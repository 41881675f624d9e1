"""The shadow repository of a project: its files as trees, in objects and an index of its own (UND-04, UND-05, UND-08).

It shares nothing with the user's repository, not even objects by alternates: a `git gc` there would take away what an older
snapshot needs. All sessions of a project share it, so unchanged content is stored once.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.undo import Blob, Change, Step
from .git import Git, home_of, show, user_config
from .journal import repository_lock
from .undo_scan import Rules, Scan, Scanner

REFS = "refs/undo/"
GIT_S = 30.0  # of one call; the first snapshot of a large project is made of many
LOCK_S = 30.0
CHUNK = 10_000  # files in one call: a snapshot that is cut off keeps what it has hashed
BATCH = 50  # blobs read at once
MAX_NAMES = 1_000  # of each kind of thing that is left out
USUAL = (0o644, 0o755, 0o664, 0o775)
OWN_FILES = (".opendev-*.tmp",)

# The highest attributes of all: content is kept byte for byte, whatever a .gitattributes says, and no filter exists.
_ATTRIBUTES = b"* -text !eol !ident !filter !working-tree-encoding !merge !diff\n"
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n\tsharedrepository = 0600\n\tsymlinks = true\n\tautocrlf = false\n"
_SETTINGS = (
    ("core.protectNTFS", "false"),  # any name that a file can have here
    ("core.protectHFS", "false"),
    ("core.autocrlf", "false"),
    ("core.safecrlf", "false"),
    ("core.looseCompression", "1"),
    ("core.preloadIndex", "true"),
    ("index.version", "4"),
    ("pack.compression", "1"),
    ("gc.auto", "6700"),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """The project at one moment: a tree, and what is not in it. Paths are relative to the top of the work tree."""

    tree: str
    nested: tuple[str, ...] = ()  # repositories inside, each with a final slash
    huge: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()  # unreadable, or no regular file
    empty: tuple[str, ...] = ()  # folders
    rules: bytes = b""  # the ignore rules that stand in no file of the tree
    perms: Mapping[str, int] = field(default_factory=dict[str, int])  # those that are not the usual ones

    @property
    def uncovered(self) -> tuple[str, ...]:
        """For people: what undo cannot bring back, with the reason."""
        kinds = (("nested repository", self.nested), ("too large", self.huge), ("unreadable", self.odd))
        return tuple(f"{show(path)} ({why})" for why, paths in kinds for path in paths)


def project_id(project: Path) -> str:
    """16 hexadecimal digits of the absolute path, as earlier implementations name it."""
    return hashlib.sha256(os.fsencode(project)).hexdigest()[:16]


class UndoStore:
    """Blocking; raises ``OpenDevError``. ``top`` is what paths are relative to: the repository that ignores things, or the project."""

    def __init__(self, project: Path, home: Path, env: Mapping[str, str], rules: Rules) -> None:
        self.project = project.resolve()
        self.rules = rules
        _refuse_root(self.project, home, env)
        self.folder = home.resolve() / "snapshot" / project_id(self.project)
        self._home = home.resolve()
        self.top, self._exclude_of_repo = _place(self.project, env)
        self.prefix = self.project.relative_to(self.top).as_posix() if self.project != self.top else ""
        carried = tuple(("core.excludesfile", v) for v in user_config(env).get("core.excludesfile", ()))
        self.git = Git(
            self.top,
            env,
            git_dir=self.folder,
            work_tree=self.top,
            index=self.folder / "index",
            config=(*_SETTINGS, *carried),
            timeout_s=GIT_S,
            own=True,
        )
        inside = self._home.is_relative_to(self.top)
        own = (f"/{self._home.relative_to(self.top).as_posix()}/",) if inside else ()
        self._never = (*OWN_FILES, *own)
        self._scanner = Scanner(self.git, self.top, self.prefix, rules, self._never)
        self._last: tuple[bytes, str] | None = None
        self._made = self.given_up = False

    def path(self, name: str) -> str:
        """A project-relative path as this store spells it."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def picture(self) -> Picture:
        """The project's present files as a tree. Raises when one cannot be stored: a snapshot counts only when it is whole (D15)."""
        self.make()
        with self.locked():
            rules = self._sync_rules()
            scan = self._scanner.scan()
            if len(scan.add) > self.rules.max_files or scan.new_bytes > self.rules.max_new:
                raise OpenDevError(
                    ErrorKind.GIT,
                    f"{self.project} holds too much that is new for a snapshot: {len(scan.add):,} files, {scan.new_bytes // 1_000_000:,} MB.",
                    "Add build output and data to .gitignore, or raise undo.max_files and undo.max_new_mb.",
                )
            tree = self._store(scan)
            perms = self._note_perms(scan)
        kinds = (scan.nested, scan.huge, scan.odd, scan.empty)
        nested, huge, odd, empty = (tuple(sorted(paths)[:MAX_NAMES]) for paths in kinds)
        return Picture(tree, nested, huge, odd, empty, rules, perms)

    def make(self) -> None:
        """The repository, with a configuration that nobody else has written."""
        if self._made:
            return
        try:
            if not (self.folder / "HEAD").exists():
                for place in (
                    self.folder.parent,
                    self.folder,
                ):  # `parents=True` would leave the first one open
                    place.mkdir(parents=True, exist_ok=True, mode=0o700)
                plain = replace(self.git, folder=self.folder, git_dir=None, work_tree=None, index=None)
                plain.run(
                    "init",
                    "--quiet",
                    "--bare",
                    "--object-format=sha1",
                    "--shared=0600",
                    "--template=",
                    str(self.folder),
                )
            (self.folder / "info").mkdir(exist_ok=True, mode=0o700)
            for name, content in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES)):
                _replace(self.folder / name, content)
            self.folder.chmod(0o700)
        except OSError as error:
            raise _disk(error) from error
        self._made = True

    def locked(self):  # noqa: ANN201  # a context manager
        """Hold the store: one snapshot, undo or clean-up at a time, over all processes."""
        return repository_lock(self.folder.with_suffix(".lock"), LOCK_S)

    def changes(self, before: Picture, after: Picture) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """What differs, and what only seems to have been created: it was there and not covered."""
        changes = self.compare(before.tree, after.tree)
        added = [change.path for change in changes if change.old is None]
        hidden = {*before.huge, *before.odd}
        left = {path for path in added if path in hidden or path.startswith(before.nested)}
        rules = any(change.path.endswith(".gitignore") for change in changes)
        if added and (rules or before.rules != after.rules):
            left |= self._once_ignored([path for path in added if path not in left], before)
        return tuple(change for change in changes if change.path not in left), tuple(sorted(left))

    def compare(self, old: str, new: str) -> tuple[Change, ...]:
        """The paths in which two trees differ."""
        if old == new:
            return ()
        fields = self.git.diff_names(old, new)
        found: list[Change] = []
        for meta, path in zip(fields[::2], fields[1::2], strict=True):
            was, now, was_id, now_id, _ = meta.removeprefix(":").split(" ")
            found.append(Change(path, _entry(was, was_id), _entry(now, now_id)))
        return tuple(found)

    def put(self, contents: Sequence[bytes]) -> tuple[str, ...]:
        """Store contents as blobs; their ids."""
        if not contents:
            return ()
        self.make()
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            names: list[str] = []
            for number, content in enumerate(contents):
                (Path(scratch) / str(number)).write_bytes(content)
                names.append(f"{scratch}/{number}")
            reply = self.git.run(
                "hash-object", "-w", "--no-filters", "--stdin-paths", stdin="\n".join(names).encode()
            )
        return tuple(reply.text.split())

    def get(self, oid: str) -> bytes:
        """A blob's content. Raises ``OpenDevError`` (git) when it is gone."""
        return self.git.run("cat-file", "blob", oid).out

    def contents(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The contents of many blobs, in order. Raises ``OpenDevError`` (git) when one is gone."""
        for start in range(0, len(oids), BATCH):
            some = oids[start : start + BATCH]
            out, at = (
                self.git.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in some).encode()).out,
                0,
            )
            for oid in some:
                head, _, _ = out[at:].partition(b"\n")
                if not head.startswith(oid.encode()) or b" blob " not in head:
                    raise OpenDevError(
                        ErrorKind.GIT, f"The store of undo no longer holds a content it needs ({oid[:10]})."
                    )
                size = int(head.rpartition(b" ")[2])
                at += len(head) + 1
                yield oid, out[at : at + size]
                at += size + 1

    def merge(self, mine: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """The three-way merge of text; None when it does not merge cleanly."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            names = [f"{scratch}/{name}" for name in ("mine", "base", "theirs")]
            for name, content in zip(names, (mine, base, theirs), strict=True):
                Path(name).write_bytes(content)
            reply = self.git.run("merge-file", "--quiet", "-p", *names, ok=range(256))
        return reply.out if reply.code == 0 else None

    def keep(self, step: Step) -> None:
        """Hold a step's objects by a ref, so that no clean-up takes them while its session lives (T-07)."""
        kinds = [("040000 tree", oid) for oid in step.trees] + [("100644 blob", oid) for oid in step.blobs]
        rows = "".join(f"{kind} {oid}\t{number:06d}\n" for number, (kind, oid) in enumerate(kinds))
        self.git.run("update-ref", _ref(step.id), self.git.run("mktree", stdin=rows.encode()).text)

    def release(self, steps: Iterable[str]) -> None:
        """Let go of steps."""
        lines = "".join(f"delete {_ref(step)}\n" for step in steps)
        if lines:
            self.git.run("update-ref", "--stdin", stdin=lines.encode())

    def kept(self) -> tuple[str, ...]:
        """The steps that hold objects."""
        names = self.git.run("for-each-ref", "--format=%(refname)", REFS.rstrip("/")).text.split()
        return tuple(name.removeprefix(REFS).replace("/", ".") for name in names)

    def prune(self, *, auto: bool = False) -> None:
        """Throw away what no step has held for seven days (UND-09, K38); ``auto``: behind the back, once there is enough to pack."""
        when = ("--auto",) if auto else ()
        replace(self.git, timeout_s=300.0, index=None).run("gc", *when, "--quiet", "--prune=7.days")

    def folders_of(self, tree: str, folders: Sequence[str]) -> frozenset[str]:
        """Those of ``folders`` that a tree holds."""
        known = [folder for folder in folders if "\n" not in folder]
        asked = "".join(f"{tree}:{folder}\n" for folder in known)
        reply = self.git.run(
            "cat-file", "--batch-check=%(objecttype)", stdin=os.fsencode(asked), ok=(0, 128)
        ).out.split(b"\n")
        return frozenset(f for f, answer in zip(known, reply, strict=False) if answer == b"tree") | (
            set(folders) - set(known)
        )

    def _sync_rules(self) -> bytes:
        """The repository's own ignore rules and ours, into this one (UND-08); its .gitignore files are read where they stand."""
        (self.folder / "index.lock").unlink(missing_ok=True)  # we hold the store: whoever made it is dead
        try:
            theirs = self._exclude_of_repo.read_bytes() if self._exclude_of_repo else b""
        except OSError:
            theirs = b""
        rules = theirs.rstrip(b"\n") + b"\n" + "\n".join(self._never).encode() + b"\n"
        try:
            _replace(self.folder / "info" / "exclude", rules)
        except OSError as error:
            raise _disk(error) from error
        return rules

    def _store(self, scan: Scan) -> str:
        if scan.remove:
            self.git.run("update-index", "-z", "--force-remove", "--stdin", stdin=_lines(scan.remove))
        for start in range(0, len(scan.add), CHUNK):
            if self.given_up:
                raise OpenDevError(
                    ErrorKind.CANCELLED, "The snapshot was given up; the next one goes on from there."
                )
            part = scan.add[start : start + CHUNK]
            self.git.run(
                "update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=_lines(part)
            )
        if self._last is None or self._last[0] != self._index_sum():
            tree = self.git.line("write-tree")
            self._last = (self._index_sum(), tree)  # it writes the index, too
        return self._last[1]

    def _index_sum(self) -> bytes:
        """The check sum at the end of the index."""
        try:
            with (self.folder / "index").open("rb") as file:
                file.seek(-20, os.SEEK_END)
                return file.read()
        except OSError:
            return b""

    def _note_perms(self, scan: Scan) -> Mapping[str, int]:
        """Permissions that are not the usual ones, by path; git keeps only the executable bit."""
        place = self.folder / "perms.json"
        try:
            known: dict[str, int] = json.loads(place.read_text())
        except (OSError, ValueError):
            known = {}
        before = dict(known)
        for path in scan.remove:
            known.pop(path, None)
        for path in scan.add:
            perm = scan.perms.get(path, USUAL[0])
            if perm in USUAL:
                known.pop(path, None)
            else:
                known[path] = perm
        if known != before:
            _replace(place, json.dumps(known).encode())
        return known

    def _once_ignored(self, paths: Sequence[str], before: Picture) -> set[str]:
        """Those of ``paths`` that the ignore rules of an earlier moment left out."""
        if self.rules.ignored == "cover" or not paths:
            return set()
        files = self.git.run("ls-tree", "-r", "-z", before.tree).fields
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            then = Path(scratch)
            (then / ".gitignore").write_bytes(before.rules)
            for row in files:
                meta, _, path = row.partition("\t")
                if path.rpartition("/")[2] == ".gitignore" and not meta.startswith("120000"):
                    (then / path).parent.mkdir(parents=True, exist_ok=True)
                    with (then / path).open("ab") as file:
                        file.write(b"\n" + self.get(meta.split(" ")[2]))
            asked = replace(self.git, folder=then, work_tree=then, index=then / "none")
            reply = asked.run("check-ignore", "--no-index", "-z", "--stdin", stdin=_lines(paths), ok=(0, 1))
        return set(reply.fields)


def _place(project: Path, env: Mapping[str, str]) -> tuple[Path, Path | None]:
    """The top of the repository whose ignore rules hold in ``project``, with its ``info/exclude``; the project itself when there is none."""
    git = Git(project, env)
    asked = (
        "rev-parse",
        "--path-format=absolute",
        "--is-inside-work-tree",
        "--show-toplevel",
        "--git-common-dir",
    )
    reply = git.run(*asked, ok=(0, 128))
    lines = os.fsdecode(reply.out).splitlines()
    if reply.code or len(lines) != 3 or lines[0] != "true":
        return project, None
    top, common = Path(lines[1]).resolve(), Path(lines[2]).resolve()
    if not project.is_relative_to(top):
        return project, None
    if project != top and git.test("check-ignore", "-q", "--no-index", "--", str(project)):
        return project, None  # a folder that the repository around it ignores is a project of its own
    return top, common / "info" / "exclude"


def _refuse_root(project: Path, home: Path, env: Mapping[str, str]) -> None:
    own = Path(home_of(env)).resolve()
    if own.is_relative_to(project) or home.resolve() == project:
        raise OpenDevError(
            ErrorKind.GIT,
            f"{project} holds your whole home folder, so no snapshots of it are made.",
            "Start OpenDev in the folder of a project.",
        )


def _entry(mode: str, oid: str) -> Blob | None:
    return None if mode == "000000" else Blob(mode, oid)


def _ref(step: str) -> str:
    return REFS + step.replace(".", "/")


def _lines(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _replace(path: Path, content: bytes) -> None:
    """Write when it differs, never half. Raises ``OSError``."""
    if path.exists() and path.read_bytes() == content:
        return
    handle, temp = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temp).replace(path)


def _disk(error: OSError) -> OpenDevError:
    return OpenDevError(
        ErrorKind.INFRA,
        f"The store of undo cannot be written: {error}.",
        "Free disk space, or set OPENDEV_HOME.",
    )
