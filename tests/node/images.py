"""Images of two folders of static binaries, packaged by k8s/images/build."""

import hashlib
import os
import pathlib

from journal import say
from objects import K8S
from programs import Failed, call

NAMES = ("issuer", "resolver")


def package(label, folder):
    """Builds both archives unless they exist; returns the tag, which names label and content."""
    folder = pathlib.Path(folder).resolve()
    digest = hashlib.sha256()
    for name in NAMES:
        if not (folder / name).is_file():
            raise Failed(f"no program {folder / name}: expected static binaries issuer and resolver")
        with (folder / name).open("rb") as binary:
            digest.update(hashlib.file_digest(binary, "sha256").digest())
    tag = f"{label}-{digest.hexdigest()[:12]}"
    if not all(archive(name, tag).is_file() for name in NAMES):
        say("packaging", tag)
        call(K8S / "images" / "build", env={**os.environ, "BINARIES": str(folder), "VERSION": tag})
    return tag


def archive(name, tag):
    return K8S.parent / "target" / "images" / f"shortmint-{name}-{tag}.tar"


def load(tag):
    """Puts both images into the storage of this run."""
    for name in NAMES:
        call("podman", "load", "--quiet", "--input", archive(name, tag))
