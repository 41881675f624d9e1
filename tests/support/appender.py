"""A process that appends lines to a log: ``python appender.py FILE NAME COUNT``; it waits for a line on its input first."""

import sys
from pathlib import Path

from opendev.store.atomic import JsonlLog

if __name__ == "__main__":
    file, name, count = sys.argv[1:]
    log = JsonlLog(Path(file))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(count)):
        log.append(f"{name}:{number}:" + name * 3000, durable=False)
