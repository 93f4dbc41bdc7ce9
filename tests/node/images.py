"""Images of folders of binaries, packaged by k8s/images/build, and of the stores of a cluster."""

import hashlib
import os
import pathlib

import objects
import rootfs
from journal import say
from programs import Failed, call

NAMES = ("issuer", "resolver")


def package(label, folder):
    """Builds both archives unless they exist; returns the tag, which names label and content."""
    folder = pathlib.Path(folder).resolve()
    digest = hashlib.sha256()
    for name in NAMES:
        if not (folder / name).is_file():
            raise Failed(f"no program {folder / name}: expected binaries issuer and resolver")
        with (folder / name).open("rb") as binary:
            digest.update(hashlib.file_digest(binary, "sha256").digest())
    tag = f"{label}-{digest.hexdigest()[:12]}"
    if not all(archive(name, tag).is_file() for name in NAMES):
        say("packaging", tag)
        if not all(is_static(folder / name) for name in NAMES):
            say("they need a loader: packing them with the libraries of this machine, as for trials")
            for name in NAMES:
                rootfs.daemon(name, tag, folder / name)
            return tag
        call(objects.K8S / "images" / "build", env={**os.environ, "BINARIES": str(folder), "VERSION": tag})
    return tag


def is_static(binary):
    return "INTERP" not in call("readelf", "--program-headers", binary)


def archive(name, tag):
    return rootfs.ARCHIVES / f"shortmint-{name}-{tag}.tar"


def load(tag):
    """Puts both images into the storage of this run."""
    for name in NAMES:
        call("podman", "load", "--quiet", "--input", archive(name, tag))


def load_stores(rendered):
    """Puts images of this machine's etcd and Postgres where the objects name those of a registry."""
    makers = {"etcd": rootfs.etcd, "postgres": rootfs.postgres}
    for image in sorted(images_of(rendered)):
        base = image.split("@")[0].split(":")[0].rsplit("/", 1)[-1]
        if base in makers:
            name = f"node-{base}-{rootfs.recipe()}"
            file = rootfs.ARCHIVES / f"{name}.tar"
            if not file.is_file():
                makers[base](name)
            call("podman", "load", "--quiet", "--input", file)
            say(image, "is", base, "of this machine")
            call("podman", "tag", f"localhost/{name}", image)


def images_of(rendered):
    """The images of all containers of rendered workloads."""
    found = set()
    for workload in rendered:
        spec = objects.pod_spec(workload) or {"containers": []}
        for container in spec.get("initContainers", []) + spec.get("containers", []):
            found.add(container["image"])
    return found
