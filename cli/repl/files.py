"""New Markdown files with front matter, that /agents create and /skills create write."""

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import ErrorKind, OpenDevError
from ...store.atomic import write_atomic


def new_text_file(path: Path, front: Mapping[str, str], body: str) -> None:
    """Write a file that does not exist yet. Raises ``OpenDevError``: usage when it does, infra when the disk refuses."""
    import yaml  # only where one is made

    if path.exists():
        raise OpenDevError(ErrorKind.USAGE, f"{path} exists and is left alone.", "Choose another name.")
    head = yaml.safe_dump(dict(front), sort_keys=False, allow_unicode=True, width=1000)
    write_atomic(path, f"---\n{head}---\n\n{body.rstrip()}\n".encode())
