"""What the environment says: the state root, keys for the model service, and a scrubbed copy for child processes."""

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

_SECRET = re.compile(
    r"API_?KEY|ACCESS_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PRIVATE_?KEY|_(KEY|PAT|PWD|AUTH)$",
    re.IGNORECASE,
)
_PROVIDER = re.compile(
    r"_(API_BASE|BASE_URL|API_VERSION|ENDPOINT|REGION|PROJECT|ORGANIZATION)$|^(AWS|AZURE|GOOGLE|VERTEX)_",
    re.IGNORECASE,
)
_NOT_FOR_CHILDREN = re.compile(r"^(OPENDEV_|RAY_|GIT_|LITELLM_)|^PYTHONBREAKPOINT$")

_KEY_CHARS = 8  # shorter values would blot out ordinary words


class Environment:
    """An immutable snapshot, taken before anything else can change it (ray.md rule 1)."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def get(self, name: str, default: str = "") -> str:
        """The value of a variable."""
        return self._values.get(name, default)

    def items(self) -> tuple[tuple[str, str], ...]:
        """All variables."""
        return tuple(self._values.items())

    @property
    def home(self) -> Path:
        """The state root: ``OPENDEV_HOME``, else ``~/.opendev``; the account's own folder where ``HOME`` is not set (D07)."""
        if chosen := self.get("OPENDEV_HOME"):
            return Path(chosen).expanduser().absolute()
        home = self.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
        return Path(home).absolute() / ".opendev"

    def child_env(self) -> dict[str, str]:
        """For commands of agents: no keys, nothing that redirects git, nothing of ours or Ray's (ACT-14, T-16)."""
        return {
            name: value
            for name, value in self._values.items()
            if not _SECRET.search(name) and not _NOT_FOR_CHILDREN.search(name)
        }

    def secret_values(self) -> tuple[str, ...]:
        """The values of all keys and passwords here, long enough to be one: they are taken out of what is handed on."""
        return tuple(v for name, v in self._values.items() if _SECRET.search(name) and len(v) >= _KEY_CHARS)

    def provider_env(self) -> dict[str, str]:
        """Keys and addresses of model providers; only the model service gets them (CFG-04)."""
        return {
            name: value
            for name, value in self._values.items()
            if _SECRET.search(name) or _PROVIDER.search(name)
        }
