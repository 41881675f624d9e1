"""What the environment says: the state root, keys for the model service, and a scrubbed copy for child processes."""

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
        """The state root: ``OPENDEV_HOME``, else ``~/.opendev``."""
        chosen = self.get("OPENDEV_HOME")
        return Path(chosen).expanduser().absolute() if chosen else Path(self.get("HOME", "/")) / ".opendev"

    def child_env(self) -> dict[str, str]:
        """For commands of agents: no keys, nothing that redirects git, nothing of ours or Ray's (ACT-14, T-16)."""
        return {
            name: value
            for name, value in self._values.items()
            if not _SECRET.search(name) and not _NOT_FOR_CHILDREN.search(name)
        }

    def provider_env(self) -> dict[str, str]:
        """Keys and addresses of model providers; only the model service gets them (CFG-04)."""
        return {
            name: value
            for name, value in self._values.items()
            if _SECRET.search(name) or _PROVIDER.search(name)
        }
