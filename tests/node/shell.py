"""The commands of a document, run by a shell in which kubectl and helm act on the bed.

`kubectl` and `helm` are the program `shim` of this folder, which sends its arguments here. helm renders for
real; what it would send to the API server is applied to the cluster of the bed. A command, a subcommand or a
flag that is not known here fails, and so does the document.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import threading

import kubectl
from journal import say
from programs import Failed

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent


def blocks(document, heading):
    """Returns the shell commands below a heading, one string for each fenced block."""
    found, is_below, block = [], False, None
    for line in (REPOSITORY / document).read_text().splitlines():
        if line.startswith("```"):
            if block and is_below:
                found.append("\n".join(block[1:]) + "\n")
            block = [line] if block is None else None
        elif block is not None:
            block.append(line)
        elif line.startswith("#"):
            is_below = line.lstrip("#").strip() == heading
    if not found:
        raise Failed(f"{document} has no commands below the heading {heading}")
    return found


def steps(block):
    """Returns the numbered steps of a block, which begin with a comment such as `# 1. Certificates.`"""
    return [part.strip() for part in re.split(r"^# (?=\d+\.)", block, flags=re.MULTILINE) if part.strip()]


def commands(block):
    """Returns the commands of a block, each in one line."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith((" ", "#"))]


class Shell:
    """Runs blocks, and answers the shims while it does."""

    def __init__(self, bed):
        self.bed, self.folder = bed, bed.scratch / "shell"
        self.folder.mkdir()
        for name in ("kubectl", "helm"):
            (self.folder / name).symlink_to(HERE / "shim")
        self.address = str(self.folder / "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen()
        bed.stack.callback(listener.close)
        threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def run(self, block, **variables):
        """Runs a block from the root of a copy of the repository, and returns its output."""
        environment = {**os.environ, **variables, "SHORTMINT_SHIM": self.address}
        environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.workplace(),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        (self.bed.scratch / "logs" / "shell.log").open("a").write(f"{block}\n{done.stdout}{done.stderr}\n")
        if done.returncode != 0:
            raise Failed(f"the commands of the document ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def workplace(self):
        """A folder with `k8s` of this checkout, in which commands may leave files."""
        folder = self.folder / "repository"
        if not folder.exists():
            folder.mkdir()
            (folder / "k8s").symlink_to(REPOSITORY / "k8s")
        return folder

    def serve(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        """Answers one call: a line of JSON with arguments, folder and input."""
        with connection, connection.makefile("rw") as stream:
            call = json.loads(stream.readline())
            say("$", call["program"], *call["arguments"])
            try:
                code, output = 0, kubectl.run(self.bed, call)
            except (Failed, ValueError, KeyError, StopIteration, argparse.ArgumentError, SystemExit) as error:
                code, output = 1, f"{call['program']}: {error!r}\n"
            stream.write(json.dumps({"code": code, "output": output}) + "\n")
