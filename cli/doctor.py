"""`opendev doctor`: what is installed, what is missing, how to mend it."""

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..core.errors import OpenDevError
from ..tools.shell.places import temporary
from ..tools.shell.sandbox import bubblewrap_fault, choose
from ..tools.web.browser import chromium_path, missing_part
from .project import Project


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's answer; ``needed`` false = only comfort."""

    what: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = True


def examine(project: Project) -> list[Finding]:
    """Look at Python, git, the tools beside the interpreter, Ray, LiteLLM, the state folder and the model."""
    search = project.environment.get("PATH")
    beside = str(Path(sys.executable).parent)
    return [
        Finding("Python", sys.version_info[:2] == (3, 11), sys.version.split()[0], "Install Python 3.11."),
        _program("git", search, "Install git from your system's packages.", needed=True),
        _program(
            "rg",
            search,
            "Optional: install ripgrep; the wheel python-ripgrep serves meanwhile.",
            needed=False,
        ),
        _program("ast-grep", beside, "Reinstall OpenDev: the wheel ast-grep-cli brings it.", needed=True),
        _program(
            "basedpyright-langserver",
            beside,
            "Reinstall OpenDev: the wheel basedpyright brings it.",
            needed=True,
        ),
        _package("ray"),
        _package("litellm"),
        _browser(project),
        _sandbox(project),
        _state(project),
        _model(project),
    ]


def _program(name: str, path: str, mend: str, *, needed: bool) -> Finding:
    found = shutil.which(name, path=path)
    return Finding(name, found is not None, found or "not found", mend, needed)


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, version(name))
    except PackageNotFoundError:
        return Finding(name, False, "not installed", f"Run `pip install -c constraints.txt {name}`.")


def _browser(project: Project) -> Finding:
    env = project.environment.child_env()
    lacking = missing_part(env)
    detail = "pages are read by plain HTTP, without their scripts" if lacking else chromium_path(env)
    return Finding("browser", not lacking, detail, lacking, needed=False)


def _sandbox(project: Project) -> Finding:
    mend = "Install bubblewrap (Debian, Fedora: package bubblewrap), or use Linux 6.2 or newer; docs/security.md."
    settings = project.config.sandbox
    try:
        chosen = choose(settings)
    except OpenDevError as error:  # asked for by name: nothing runs without it
        return Finding("sandbox", False, error.info.message, mend)
    detail = f"{chosen.why} The network is {'denied' if settings.network == 'deny' else 'allowed'}."
    if settings.mode == "off":
        return Finding("sandbox", False, chosen.why, "Set sandbox.mode to auto.", needed=False)
    if chosen.kind == "landlock" and settings.mode == "auto":
        detail += f" Bubblewrap would hide and protect more: {bubblewrap_fault(settings.network)}."
    temp = temporary(dict(project.environment.items()))
    if chosen.kind == "landlock" and any(project.layout.home.resolve().is_relative_to(one) for one in temp):
        detail += " The state folder lies in a temporary folder, which Landlock cannot keep commands out of."
    found = chosen.kind != "none"
    return Finding("sandbox", found, detail if found else chosen.why, mend, needed=False)


def _state(project: Project) -> Finding:
    try:
        project.layout.check_writable()
    except OpenDevError as error:
        return Finding("state folder", False, error.info.message, error.info.hint)
    free = shutil.disk_usage(project.layout.home).free // 2**20
    enough = free >= project.config.swarm.disk_floor_mb
    return Finding("state folder", enough, f"{project.layout.home}, {free} MB free", "Free disk space.")


def _model(project: Project) -> Finding:
    if model := project.config.models():
        return Finding("model", True, ", ".join(f"{role.value}: {name}" for role, name in model.items()))
    mend = "Set OPENDEV_MODEL=provider/NAME and the provider's key; recipes run without a model."
    return Finding("model", False, "none configured", mend, needed=False)


def report(findings: list[Finding], *, as_json: bool) -> str:
    """The findings as text or JSON."""
    if as_json:
        return json.dumps({"schema": 1, "findings": [asdict(finding) for finding in findings]}, indent=2)
    lines: list[str] = []
    for finding in findings:
        mark = "ok     " if finding.ok else ("MISSING" if finding.needed else "absent ")
        lines.append(f"{mark}  {finding.what:24} {finding.detail}")
        if not finding.ok:
            lines.append(f"         -> {finding.mend}")
    return "\n".join(lines)
