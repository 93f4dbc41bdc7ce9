"""Programs of the machine: where they are, one call, and servers that run until they are stopped."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

DEBIAN = "buildah podman runc nftables iproute2 dnsmasq-base etcd-server postgresql openssl wrk curl jq"
NEEDED = (
    "podman",
    "runc",
    "nft",
    "ip",
    "dnsmasq",
    "etcd",
    "openssl",
    "wrk",
    "curl",
    "setpriv",
    "helm",
    "envoy",
)


class Failed(Exception):
    """A program, or something that was waited for, did not do what the run needs."""


def path_of(name):
    """Returns the path of a program: from the environment, from beside this Python, or from the PATH."""
    beside = pathlib.Path(sys.executable).parent / name
    found = os.environ.get(name.upper()) or (str(beside) if beside.is_file() else shutil.which(name))
    if not found:
        raise Failed(
            f"no program {name}: expected the Debian packages {DEBIAN}, and helm and envoy beside"
            f" this Python, on the PATH or in the variables HELM and ENVOY"
        )
    return found


def postgres_folder():
    """Debian keeps Postgres outside of the PATH, in one folder per major version."""
    folders = [path.parent for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not folders:
        raise Failed("no Postgres in /usr/lib/postgresql: expected the Debian package postgresql")
    return max(folders, key=lambda folder: float(folder.parent.name))


def call(*command, **options):
    """Runs a program to its end and returns its output; raises with its errors if it fails."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)[:300]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip()


class Server:
    """A program that runs until it is stopped, by its process id."""

    def __init__(self, name, command, log, stop_signal=signal.SIGTERM, **options):
        self.name, self.log, self.stop_signal = name, log, stop_signal
        command = [str(part) for part in command]
        options.setdefault("stdout", log.open("w"))
        self.process = subprocess.Popen(command, stderr=log.open("a"), stdin=subprocess.DEVNULL, **options)

    def check(self):
        """Raises if the program has ended by itself."""
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}: see {self.log}")

    def stop(self, seconds=20):
        """Asks the program to end, and kills it past this time."""
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
