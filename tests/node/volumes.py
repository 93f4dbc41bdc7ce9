"""Volumes of a pod, as a kubelet lays them out in folders of the node."""

import os
import shutil
import time

from programs import call
from quantities import size


class Volumes:
    """Folders by volume name. They outlast a container that restarts, and end with the pod."""

    def __init__(self, folder, spec, cluster):
        self.folder, self.spec, self.cluster = folder, spec, cluster
        self.group = spec.get("securityContext", {}).get("fsGroup", 0)
        self.by_name = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for name, volume in self.by_name.items():
            if volume.get("persistentVolumeClaim", {}).get("claimName") in cluster.doomed:
                cluster.doomed.remove(volume["persistentVolumeClaim"]["claimName"])
                shutil.rmtree(self.path(name), ignore_errors=True)
            self.path(name).mkdir(parents=True, exist_ok="persistentVolumeClaim" in volume)
            if "emptyDir" in volume:
                self.empty(name, volume["emptyDir"])
            elif "persistentVolumeClaim" in volume:
                os.chown(self.path(name), 0, self.group)
                self.path(name).chmod(0o2775)
        self.project()

    def path(self, name):
        """The folder of a volume. That of a claim belongs to the cluster, and outlasts the pod."""
        if claim := self.by_name[name].get("persistentVolumeClaim"):
            return self.cluster.scratch / "claims" / claim["claimName"]
        # A kubelet's name, by which a daemon can tell that the volume goes with its pod.
        kind = "kubernetes.io~empty-dir" if "emptyDir" in self.by_name[name] else "others"
        return self.folder / kind / name

    def empty(self, name, options):
        """A writable folder; in memory if the manifest says so."""
        if options.get("medium") == "Memory":
            limit = f"size={size(options['sizeLimit'])}" if "sizeLimit" in options else "size=50%"
            call("mount", "-t", "tmpfs", "-o", limit, "tmpfs", self.path(name))
        os.chown(self.path(name), 0, self.group)
        self.path(name).chmod(0o2777)

    def project(self):
        """Writes Secrets and ConfigMaps, also again when one of them has changed."""
        for name, volume in self.by_name.items():
            if "secret" in volume:
                source, kind, owner = volume["secret"], "Secret", volume["secret"]["secretName"]
            elif "configMap" in volume:
                source, kind, owner = volume["configMap"], "ConfigMap", volume["configMap"]["name"]
            elif "emptyDir" in volume or "persistentVolumeClaim" in volume:
                continue
            else:
                raise ValueError(f"volume {volume} is of a kind that is not known here")
            files = self.files(kind, owner, source)
            swap(self.path(name), files, source.get("defaultMode", 0o644), self.group)

    def files(self, kind, owner, source):
        """Returns the contents by file name; an optional object or key may be absent."""
        data = self.cluster.data(kind, owner)
        if data is None and not source.get("optional"):
            raise ValueError(f"no {kind} {owner}")
        data = data or {}
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        absent = [item["key"] for item in items if item["key"] not in data]
        if absent and not source.get("optional"):
            raise ValueError(f"{kind} {owner}: no key {absent}")
        return {item["path"]: data[item["key"]] for item in items if item["key"] in data}

    def excess(self):
        """Returns the name of an emptyDir that is larger than its sizeLimit, which a kubelet evicts for."""
        for name, volume in self.by_name.items():
            limit = volume.get("emptyDir", {}).get("sizeLimit")
            if limit and int(call("du", "-s", "-B1", self.path(name)).split()[0]) > size(limit):
                return name
        return None

    def remove(self):
        for name, volume in self.by_name.items():
            if volume.get("emptyDir", {}).get("medium") == "Memory":
                call("umount", self.path(name))
        shutil.rmtree(self.folder, ignore_errors=True)


def swap(folder, files, mode, group):
    """Replaces all files at once: they are symlinks into `..data`, itself a symlink that is renamed over."""
    current = folder / "..data"
    before = current.resolve() if current.is_symlink() else None
    if before and {path.name: path.read_text() for path in before.iterdir()} == files:
        return
    new = folder / f"..{time.time_ns()}"
    new.mkdir()
    for name, text in files.items():
        (new / name).write_text(text)
        (new / name).chmod(mode)
        os.chown(new / name, 0, group)
    (folder / "..new").symlink_to(new.name)
    (folder / "..new").rename(current)
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    if before:
        shutil.rmtree(before)
