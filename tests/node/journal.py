"""The log of a run: each line with the seconds since the start, on standard output and in a file."""

import threading
import time

_start = time.monotonic()
_lock = threading.Lock()
_file = None


def open_file(path):
    """Repeats every further line in this file."""
    global _file
    _file = path.open("a")


def say(*words):
    """Prints one line."""
    line = f"{seconds():8.2f}  {' '.join(str(word) for word in words)}"
    with _lock:
        print(line, flush=True)
        if _file:
            print(line, file=_file, flush=True)


def seconds():
    """Seconds since the start of the run."""
    return time.monotonic() - _start
