"""The variables that keep a command from waiting for a person: no pager, no editor, no prompt (P07, P09, SHL-03)."""

import os
import shutil
from collections.abc import Mapping

QUIET: Mapping[str, str] = {
    **dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "GH_PAGER", "BAT_PAGER"), "cat"),
    "AWS_PAGER": "",
    **dict.fromkeys(("EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), "false"),
    "GIT_TERMINAL_PROMPT": "0",
    **dict.fromkeys(("GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS"), "false"),
    # Without a terminal this alone stops every question of ssh; GIT_SSH_COMMAND would replace the user's core.sshCommand.
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "npm_config_yes": "true",
    "PYTHONUNBUFFERED": "1",
    "TERM": "dumb",
}


def command_env(env: Mapping[str, str], marker: Mapping[str, str]) -> dict[str, str]:
    """A command's whole environment: ``env``, then the quiet settings, then the marker; nothing of this process."""
    return {**env, **QUIET, **marker}


def find_shell(env: Mapping[str, str]) -> str:
    """The shell that runs commands: bash of ``env``'s path, else sh."""
    path = env.get("PATH", os.defpath)
    return shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh"
