"""Skills: Markdown files with front matter; only name and description are known before one is loaded (SKL-01..06)."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.tool import Skill
from ..store.consent import agreed
from ..store.plugins import plugins

MAX_BYTES = 256_000  # of one file
MAX_SKILLS = 200  # of one folder
MAX_DESCRIPTION = 500
MAX_FILES = 50  # beside a SKILL.md, that are named
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9]\b)")


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """What the folders hold, project before user, and a sentence for every file that is not used."""

    skills: tuple[Skill, ...] = ()
    refused: tuple[str, ...] = ()
    untrusted: Mapping[str, tuple[str, str]] = field(
        default_factory=dict[str, tuple[str, str]]
    )  # path and digest


class SkillLoader:
    """The skills of one factory (AGT-08)."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self.by_name: Mapping[str, Skill] = {skill.name: skill for skill in skills}

    def note(self) -> str:
        """The part of the system prompt that lists them, one line each (SKL-02, PRM-14); empty without skills."""
        if not self.by_name:
            return ""
        lines = [f"- {name}: {self.by_name[name].description}" for name in sorted(self.by_name)]
        return "\n\n# Skills\n\nLoad one before you do its kind of work.\n\n" + "\n".join(lines)


def discover(home: Path, project: Path) -> FoundSkills:
    """The skills of ``project/.opendev/skills`` over those of ``home/skills`` (SKL-05); none are shipped with the package.

    A project's skill is used only when its content is in the user's consent file. A broken file costs only itself. Blocking.
    """
    consent = agreed(home)
    found: dict[str, Skill] = {}
    refused: list[str] = []
    untrusted: dict[str, tuple[str, str]] = {}
    tiers: tuple[tuple[Literal["project", "user"], Path], ...] = (
        ("project", project / ".opendev" / "skills"),
        ("user", home / "skills"),
        *(("user", plugin.folder / "skills") for plugin in plugins(home)),
    )
    for tier, folder in tiers:
        for path in _files(folder):
            try:
                skill = read_skill(path, tier)
            except OpenDevError as error:
                refused.append(error.info.sentence())
                continue
            if tier == "project" and consent.get(skill.path) != skill.digest:
                untrusted[skill.name] = (skill.path, skill.digest)
                refused.append(
                    f"The skill {skill.name} ({path}) comes with the project and is not trusted: it is not used. "
                    f"Read it; to agree: opendev skills trust {skill.name}."
                )
            elif skill.name not in found:
                found[skill.name] = skill
            elif found[skill.name].tier == tier:
                refused.append(f"The skill {path} is not used: {found[skill.name].path} has the same name.")
    return FoundSkills(tuple(found.values()), tuple(refused), untrusted)


def read_skill(path: Path, tier: Literal["project", "user"]) -> Skill:
    """What is known of the skill in a file. Raises ``OpenDevError`` (config) when it is malformed."""
    data = _content(path)
    front = FRONT.match(data.decode("utf-8-sig", "replace"))
    if front is None:
        raise _wrong(path, "it has no front matter (name, description) between two lines of ---")
    try:
        value: Any = yaml.safe_load(front.group(1))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(path, f"its front matter is no YAML ({' '.join(str(error).split())[:200]})") from error
    given = cast("JsonObject", value) if isinstance(value, dict) else {}
    name = str(given.get("name") or (path.parent.name if path.name == "SKILL.md" else path.stem))
    described = " ".join(str(given.get("description") or "").split())
    if not _NAME.fullmatch(name):
        raise _wrong(path, f"the name {name[:80]!r} is not a word of letters, digits, - and _")
    if not described:
        raise _wrong(path, "it has no description, by which it would be chosen")
    return Skill(
        name=name,
        description=described[:MAX_DESCRIPTION],
        path=str(path.resolve()),
        digest=hashlib.sha256(data).hexdigest(),
        tier=tier,
        namespace=str(given.get("namespace") or "default")[:64],
    )


def body_of(skill: Skill, arguments: str) -> str:
    """The text of a skill, without its front matter, ``$ARGUMENTS`` and ``$1`` … filled in, and the files beside it. Blocking.

    Raises:
        OpenDevError: not found when it cannot be read any more, denied when it is not the file that was found (and agreed to).
    """
    path = Path(skill.path)
    data = _content(path)
    if hashlib.sha256(data).hexdigest() != skill.digest:
        raise OpenDevError(
            ErrorKind.DENIED,
            f"The skill file {path} was changed since it was read.",
            "It counts from the next run on.",
        )
    text = data.decode("utf-8-sig", "replace")
    front = FRONT.match(text)
    body = fill_places(text[front.end() :] if front else text, arguments).strip()
    shown = f'<skill_content name="{skill.name}">\n{body}\n</skill_content>'
    files = _beside(path)
    return f"{shown}\n<skill_files>\n" + "\n".join(files) + "\n</skill_files>" if files else shown


def fill_places(text: str, arguments: str) -> str:
    """``text`` with ``$ARGUMENTS`` and ``$1`` … ``$9`` filled in."""
    words = arguments.split()

    def fill(found: re.Match[str]) -> str:
        if found[1] == "ARGUMENTS":
            return arguments
        index = int(found[1]) - 1
        return words[index] if index < len(words) else ""

    return _PLACE.sub(fill, text)


def _beside(path: Path) -> list[str]:
    if path.name != "SKILL.md":
        return []
    others = sorted(str(item) for item in path.parent.rglob("*") if item.is_file() and item != path)
    return others[:MAX_FILES]


def _files(folder: Path) -> list[Path]:
    """``<folder>/**/SKILL.md`` and ``<folder>/<name>.md``, sorted."""
    try:
        found = {*folder.rglob("SKILL.md"), *folder.glob("*.md")}
        return sorted(path for path in found if path.is_file())[:MAX_SKILLS]
    except OSError:
        return []


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror or error})", ErrorKind.NOT_FOUND) from error
    if len(data) > MAX_BYTES:
        raise _wrong(path, f"it is larger than {MAX_BYTES:,} bytes")
    return data


def _wrong(path: Path, why: str, kind: ErrorKind = ErrorKind.CONFIG) -> OpenDevError:
    return OpenDevError(kind, f"The skill file {path} cannot be used: {why}.")
