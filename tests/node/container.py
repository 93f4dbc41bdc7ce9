"""One run of a container: podman and runc, with the restrictions of the manifest."""

import json
import os
import pathlib
import select
import signal
import subprocess

import environment
from programs import call
from quantities import processors, size


class Container:
    """A process of a pod. A restart is another container with the same network and volumes."""

    def __init__(self, pod, cluster, spec):
        part = "" if spec in pod.spec["containers"] else f"-{spec['name']}"
        self.name = f"{pod.name}-{pod.restarts}-{pod.serial}{part}"
        files = pod.folder / f"{self.name}.pid"
        self.log = cluster.scratch / "logs" / f"{self.name}.log"
        command = [
            "podman",
            "run",
            "--detach",
            # An attempt that failed leaves a container of this name.
            "--replace",
            "--name",
            self.name,
            "--pidfile",
            files,
            "--log-opt",
            f"path={self.log}",
            "--pids-limit",
            "256",
            *network(pod, cluster),
            *security(pod.spec, spec),
            *resources(spec.get("resources", {})),
            *mounts(pod, spec),
            *settings(pod, spec, cluster),
            spec["image"],
            *arguments(pod, spec, cluster),
        ]
        call(*command)
        name = call("podman", "inspect", "--format", "{{.Config.StopSignal}}", self.name)
        self.stop_signal = signal.Signals(int(name) if name.isdigit() else signal.Signals[name])
        self.pid = int(files.read_text())
        try:
            # A handle and not a number, which another process could have by the time it is used.
            self.handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self.handle = None

    def signal(self, number):
        """Sends a signal to the container's first process."""
        if self.handle is not None:
            try:
                signal.pidfd_send_signal(self.handle, number)
            except ProcessLookupError:
                pass

    def wait(self, seconds=None):
        """Waits for the end; returns whether it has come."""
        return self.handle is None or bool(select.select([self.handle], [], [], seconds)[0])

    def stop(self, grace):
        """The signal that the image names, and SIGKILL past the grace period."""
        self.signal(self.stop_signal)
        if not self.wait(grace):
            self.signal(signal.SIGKILL)
            self.wait()

    def execute(self, command, seconds=60, **options):
        """Runs a program inside the container, as `kubectl exec` does."""
        variables = pathlib.Path(f"/proc/{self.pid}/environ")
        status = pathlib.Path(f"/proc/{self.pid}/status")
        try:
            pairs = (entry.split("=", 1) for entry in variables.read_text().split("\0") if "=" in entry)
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            user, group = (fields[name].split()[0] for name in ("Uid", "Gid"))
            enter = f"/usr/bin/nsenter --target {self.pid} --mount --net --ipc --uts --pid --root".split()
            enter += ["--setuid", user, "--setgid", group, "--", *command]
            options = {"env": dict(pairs), "capture_output": True, "timeout": seconds, **options}
            return subprocess.run(enter, check=False, **options)
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(command, 255, b"", str(error).encode())

    def last_line(self):
        """Returns its last line of output. In podman's log, P marks a part of a line, and F its end."""
        parts = [line.split(" ", 3) for line in self.log.read_text().splitlines()]
        text = "".join(part[3] + ("\n" if part[2] == "F" else "") for part in parts)
        return (text.splitlines() or [""])[-1]

    def remove(self):
        """Returns the exit code of a container that has ended, and forgets it."""
        code = int(call("podman", "wait", "--interval", "20ms", self.name))
        call("podman", "rm", "--force", "--time", "0", self.name)
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
        return code


def network(pod, cluster):
    """The namespace of the pod, its name, and the resolver's settings of the cluster."""
    hosts = pod.folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{pod.host.address} {pod.name}\n")
    searches = [f"{pod.namespace}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
    return [
        "--network",
        f"ns:/run/netns/{pod.host.name}",
        "--hostname",
        pod.name,
        # Podman's own would repeat the names of this machine.
        "--no-hosts",
        "--volume",
        f"{hosts}:/etc/hosts:ro",
        "--dns",
        cluster.names.address,
        "--dns-option",
        "ndots:5",
        *(part for search in searches for part in ("--dns-search", search)),
    ]


def security(spec, container):
    """User, groups, capabilities and the root file system."""
    pod, own = spec.get("securityContext", {}), container.get("securityContext", {})
    merged = {**pod, **own}
    options = []
    if "runAsUser" in merged:
        options += ["--user", f"{merged['runAsUser']}:{merged.get('runAsGroup', 0)}"]
    if "fsGroup" in pod:
        options += ["--group-add", str(pod["fsGroup"])]
    if own.get("readOnlyRootFilesystem"):
        # Podman would otherwise mount a writable /tmp, /run and /var/tmp.
        options += ["--read-only", "--read-only-tmpfs=false"]
    for capability in own.get("capabilities", {}).get("drop", []):
        options += ["--cap-drop", capability.lower()]
    if own.get("allowPrivilegeEscalation") is False:
        options += ["--security-opt", "no-new-privileges"]
    return options


def resources(found):
    """Limits of memory and processors, and the weight of the requested processors."""
    limits, requests = found.get("limits", {}), found.get("requests", {})
    options = []
    if "memory" in limits:
        options += ["--memory", str(size(limits["memory"])), "--memory-swap", str(size(limits["memory"]))]
    if "cpu" in limits:
        options += ["--cpu-period", "100000", "--cpu-quota", str(int(processors(limits["cpu"]) * 100_000))]
    if "cpu" in requests:
        options += ["--cpu-shares", str(max(2, int(processors(requests["cpu"]) * 1024)))]
    return options


def mounts(pod, container):
    options = []
    for mount in container.get("volumeMounts", []):
        if unknown := set(mount) - {"name", "mountPath", "readOnly", "subPath"}:
            raise ValueError(f"volumeMounts with {sorted(unknown)} are not known here")
        mode = "ro" if mount.get("readOnly") else "rw"
        source = pod.volumes.path(mount["name"]) / mount.get("subPath", "")
        options += ["--volume", f"{source}:{mount['mountPath']}:{mode}"]
    return options


def settings(pod, container, cluster):
    options = ["--workdir", container["workingDir"]] if "workingDir" in container else []
    if "command" in container:
        options += ["--entrypoint", json.dumps(container["command"])]
    for name, value in environment.of(container, pod, cluster).items():
        options += ["--env", f"{name}={value}"]
    return options


def arguments(pod, container, cluster):
    variables = environment.of(container, pod, cluster)
    return [environment.expand(argument, variables) for argument in container.get("args", [])]


def configure(folder):
    """Settings of podman for this run alone: its storage, and what this kernel and this user allow."""
    hard = min(20_000, int(call("sh", "-c", "ulimit -Hn").replace("unlimited", "20000")))
    (folder / "containers.conf").write_text(
        "[containers]\n"
        'cgroupns = "host"\n'
        # Podman's defaults are above the hard limits of an unprivileged root.
        f'default_ulimits = ["nofile=1024:{hard}", "nproc=4096:4096"]\n'
        'log_driver = "k8s-file"\n'
        "[engine]\n"
        'runtime = "runc"\n'
        'cgroup_manager = "cgroupfs"\n'
        'events_logger = "none"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/podman"\n'
    )
    # State of podman and runc outside of its storage, such as locks: not to be shared with other runs.
    for path in ("/run/runc", "/run/libpod", "/dev/shm"):
        pathlib.Path(path).mkdir(exist_ok=True)
        call("mount", "-t", "tmpfs", "tmpfs", path)
    os.environ["CONTAINERS_CONF"] = str(folder / "containers.conf")
    os.environ["CONTAINERS_STORAGE_CONF"] = str(folder / "storage.conf")
