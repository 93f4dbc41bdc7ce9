"""A pod: a network namespace, volumes, and one container that is started, probed, restarted and stopped."""

import itertools
import shutil
import signal
import threading
import time

import scheduler
from container import Container
from journal import say
from probes import Prober
from programs import Failed
from volumes import Volumes

# Each pod has its own, because the pods of a StatefulSet have the same name one after another.
serials = itertools.count()
# A kubelet waits 10 s before the second restart, then twice as long each time.
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 10, 300
EVICTION_CHECK_SECONDS = 10
KNOWN = {
    "containers",
    "initContainers",
    "volumes",
    "restartPolicy",
    "securityContext",
    "terminationGracePeriodSeconds",
    "tolerations",
    "serviceAccountName",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "topologySpreadConstraints",
}


class Pod:
    """What the API shows of a pod, and the kubelet's threads that make it so."""

    def __init__(self, name, template, owner, revision, node, cluster, claims=()):
        self.name, self.namespace, self.node = name, cluster.namespace, node
        self.owner, self.revision = owner, revision
        self.spec, self.labels = template["spec"], template["metadata"]["labels"]
        self.annotations = template["metadata"].get("annotations", {})
        if unknown := set(self.spec) - KNOWN or len(self.spec["containers"]) != 1:
            raise ValueError(f"pod {name}: {unknown} is not known here")
        # The volumes of a StatefulSet's pod stay for the next pod of its name.
        claimed = [{"name": c, "persistentVolumeClaim": {"claimName": f"{c}-{name}"}} for c in claims]
        self.spec = {**self.spec, "volumes": self.spec.get("volumes", []) + claimed}
        self.cluster, self.serial = cluster, next(serials)
        self.folder = cluster.scratch / "pods" / f"{name}-{self.serial}"
        self.host = self.volumes = self.container = None
        self.ready_since = self.deleted_at = self.failure = self.exit_code = None
        self.created_at = time.monotonic()
        self.phase, self.restarts, self.is_lost = "Pending", 0, False
        self.deleted, self.gone = threading.Event(), threading.Event()
        threading.Thread(target=self.live, daemon=True, name=name).start()

    @property
    def is_ready(self):
        return self.ready_since is not None

    @property
    def is_active(self):
        """Whether a controller counts it: not on its way out, and not at its end."""
        return self.deleted_at is None and self.phase in ("Pending", "Running")

    def all_labels(self):
        """Its labels, and that of its revision."""
        return {**self.labels, scheduler.REVISION: self.revision}

    def is_available(self, seconds):
        """Whether it has been ready for `minReadySeconds`."""
        return self.is_active and self.is_ready and time.monotonic() - self.ready_since >= seconds

    def live(self):
        """The kubelet's loop: from the first address to the last log line."""
        while not self.deleted.is_set():
            try:
                self.prepare()
                while self.run_once():
                    pass
                break
            except (Failed, ValueError, OSError) as error:
                say(self.name, "cannot start:", error)
                self.deleted.wait(BACKOFF_SECONDS)
        if not self.is_lost:
            self.end()

    def prepare(self):
        """Network and volumes, unless an earlier attempt got so far."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.host:
            self.host = self.cluster.network.add(f"{self.name}-{self.serial}", self.namespace, self.labels)
            self.cluster.changed()
        if not self.volumes:
            shutil.rmtree(self.folder / "volumes", ignore_errors=True)
            self.volumes = Volumes(self.folder / "volumes", self.spec, self.cluster)
            threading.Thread(target=self.watch_volumes, daemon=True).start()

    def run_once(self):
        """Runs the container once; returns whether it is to be started again."""
        if self.deleted.is_set():
            return False
        if not self.restarts and not self.initialize():
            return False
        self.container = Container(self, self.cluster, self.spec["containers"][0])
        self.phase = "Running"
        prober = Prober(self, self.container, self.set_ready, self.kill_container)
        self.cluster.changed()
        if self.deleted.is_set():
            self.stop_container()  # It was deleted while podman started it.
        self.container.wait()
        prober.stop()
        if self.is_lost:
            return False
        self.set_ready(False)
        code = self.exit_code = self.container.remove()
        say(
            self.name, "ended with", code, "" if self.deleted_at is None else self.time_since(self.deleted_at)
        )
        policy = self.spec.get("restartPolicy", "Always")
        if (
            self.failure
            or self.deleted_at is not None
            or policy == "Never"
            or (policy == "OnFailure" and code == 0)
        ):
            self.phase = "Succeeded" if code == 0 and not self.failure else "Failed"
            return False
        if self.restarts:
            self.deleted.wait(min(BACKOFF_SECONDS * 2 ** (self.restarts - 1), BACKOFF_SECONDS_MAX))
        self.restarts += 1
        return True

    def initialize(self):
        """Runs the init containers one after another; returns whether all of them succeeded."""
        for spec in self.spec.get("initContainers", []):
            self.container = Container(self, self.cluster, spec)
            self.container.wait()
            if code := self.container.remove():
                say(self.name, spec["name"], "ended with", code)
                self.exit_code, self.phase = code, "Failed"
                return False
        return True

    def time_since(self, start):
        return f"after {time.monotonic() - start:.2f} s"

    def set_ready(self, ready):
        """Takes over what the readiness probe found."""
        if ready == self.is_ready or self.is_lost:
            return
        self.ready_since = time.monotonic() if ready else None
        say(
            self.name,
            "is ready" if ready else "is not ready",
            self.time_since(self.created_at) if ready else "",
        )
        self.cluster.changed()

    def grace(self):
        return self.spec.get("terminationGracePeriodSeconds", 30)

    def kill_container(self):
        """Ends the container for its probes. The pod stays, and starts another."""
        self.container.stop(self.grace())

    def stop_container(self):
        threading.Thread(target=self.container.stop, args=(self.grace(),), daemon=True).start()

    def delete(self):
        """Marks the pod as deleted. The container hears of it at the same time as the endpoints."""
        if self.deleted_at is None and not self.gone.is_set():
            self.deleted_at = time.monotonic()
            self.deleted.set()
            say(self.name, "is deleted")
            self.cluster.changed()
            if self.container and not self.is_lost:
                self.stop_container()

    def lose(self):
        """Its node is gone, without a word to anything else: not even the kernel closes connections."""
        self.is_lost = True
        self.cluster.network.cut(self.host)
        self.container.signal(signal.SIGKILL)

    def watch_volumes(self):
        """Evicts the pod if an emptyDir has outgrown its limit."""
        while not self.gone.wait(EVICTION_CHECK_SECONDS):
            if not self.is_lost and (name := self.volumes.excess()):
                self.failure = f"evicted: volume {name} is larger than its sizeLimit"
                say(self.name, self.failure)
                self.container.stop(0)
                return

    def end(self):
        """Takes back what the node gave to the pod."""
        if self.host:
            self.cluster.network.remove(self.host)
        self.gone.set()
        if self.volumes:
            self.volumes.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.cluster.changed()
