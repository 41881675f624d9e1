"""Processes that add to one session at once: ``python session_writer.py HOME PROJECT NAMES COUNT``, one for each letter of NAMES."""

import os
import sys
from pathlib import Path

from opendev.core.chat import UserMessage
from opendev.core.session import SessionMeta
from opendev.store.layout import Layout
from opendev.store.records import TranscriptLine
from opendev.store.sessions import SessionStore

ID = "shared"


def write(store: SessionStore, name: str, count: int) -> None:
    """Each turn is one message and one write of the record, with a key of its own."""
    files = store.files(ID)
    for number in range(count):
        message = UserMessage(content=f"{name}:{number}:" + name * 2000)
        files.append([TranscriptLine(at="t", message=message).to_json()])
        files.update(lambda meta, n=number: (meta or SessionMeta(id=ID)).with_metadata(**{name: n}))


def main(home: str, project: str, names: str, count: int) -> int:
    """Fork, so that they are ready at the same moment; 0 when every one of them ended well."""
    store = SessionStore(Layout(Path(home)), Path(project))
    children: list[int] = []
    for name in names:
        child = os.fork()
        if child == 0:
            write(store, name, count)
            os._exit(0)
        children.append(child)
    return int(any(os.waitpid(child, 0)[1] for child in children))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
