"""Processes that append to one log at once: ``python appender.py FILE NAMES COUNT``, one for each letter of NAMES."""

import os
import sys
from pathlib import Path

from opendev.store.atomic import JsonlLog

if __name__ == "__main__":
    file, names, count = sys.argv[1:]
    children: list[int] = []
    for name in names:  # forked, so that they are ready at the same moment
        child = os.fork()
        if child == 0:
            for number in range(int(count)):
                JsonlLog(Path(file)).append(f"{name}:{number}:" + name * 3000, durable=False)
            os._exit(0)
        children.append(child)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))
