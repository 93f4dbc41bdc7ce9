"""The nodes of the cluster: their loss, the controller that notices it, and drains."""

import time

import scheduler
from journal import say
from policies import matches
from quantities import share
from scheduler import Node

BUDGET_FIELDS = {"selector", "maxUnavailable", "minAvailable", "unhealthyPodEvictionPolicy"}
# Defaults of Kubernetes: when a node that is silent counts as lost, and how long its pods are tolerated then.
NODE_GRACE_SECONDS, TOLERATION_SECONDS = 50, 300


class Nodes:
    """The nodes and what happens to them."""

    def __init__(self, cluster, names):
        self.cluster = cluster
        self.all = [Node(name) for name in names]
        self.lost = {}

    def add(self, name, *taints):
        self.all.append(Node(name, taints=list(taints)))

    def __getitem__(self, name):
        return next(node for node in self.all if node.name == name)

    def place(self, spec, labels):
        """Returns the node for a new pod, or None with the reason."""
        return scheduler.place(spec, labels, self.all, self.cluster.pods)

    def lose(self, name):
        """Kills all processes of a node and cuts its network. The API learns of it by silence only."""
        with self.cluster.lock:
            self.lost[name] = time.monotonic()
            self[name].is_gone = True
            lost = [pod for pod in self.cluster.pods if pod.node == name and not pod.gone.is_set()]
        for pod in lost:
            pod.lose()
        return lost

    def check(self):
        """The node controller: silent nodes are unreachable; their pods are not ready, and later deleted."""
        for name, since in self.lost.items():
            silent = time.monotonic() - since
            if silent < NODE_GRACE_SECONDS:
                continue
            if scheduler.UNREACHABLE not in self[name].taints:
                self[name].taints.append(scheduler.UNREACHABLE)
            for pod in self.cluster.pods:
                if pod.node == name and pod.is_lost and pod.deleted_at is None:
                    if pod.is_ready:
                        pod.ready_since = None
                        say(pod.name, "is not ready: its node does not report")
                        self.cluster.changed()
                    if silent >= NODE_GRACE_SECONDS + toleration(pod.spec):
                        pod.delete()

    def cordon(self, name):
        """Keeps new pods away."""
        self[name].taints.append(scheduler.CORDONED)
        say(name, "is cordoned")

    def uncordon(self, name):
        self[name].taints.remove(scheduler.CORDONED)

    def drain(self, name, seconds):
        """Evicts all pods of a node, as `kubectl drain`; returns those that a budget kept until the end."""
        if scheduler.CORDONED not in self[name].taints:
            self.cordon(name)
        end = time.monotonic() + seconds
        while left := [pod for pod in self.on(name) if pod.deleted_at is None]:
            evicted = [pod for pod in left if self.evict(pod)]
            if time.monotonic() > end:
                return [pod for pod in left if pod not in evicted]
            time.sleep(1)
        return []

    def on(self, name):
        with self.cluster.lock:
            pods = [pod for pod in self.cluster.pods if pod.node == name and pod.owner[0] != "Job"]
        return [pod for pod in pods if pod.is_active]

    def evict(self, pod):
        """Deletes a pod unless its disruption budget is used up; returns whether it did."""
        with self.cluster.lock:
            for budget in self.cluster.of_kind("PodDisruptionBudget"):
                spec = budget["spec"]
                if matches(spec["selector"], pod.labels) and not self.has_room(spec, pod):
                    return False
            say(pod.name, "is evicted")
            pod.delete()
            return True

    def has_room(self, spec, pod):
        """Whether one pod more may go. `AlwaysAllow` lets a pod go that is not ready anyway."""
        if unknown := set(spec) - BUDGET_FIELDS:
            raise ValueError(f"disruption budgets with {sorted(unknown)} are not known here")
        if not pod.is_ready and spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return True
        alike = [other for other in self.cluster.pods if matches(spec["selector"], other.labels)]
        ready = sum(other.is_active and other.is_ready for other in alike)
        wanted = self.cluster.replicas(pod.owner)
        if "maxUnavailable" in spec:
            return ready - 1 >= wanted - share(spec["maxUnavailable"], wanted)
        return ready - 1 >= share(spec["minAvailable"], wanted)


def toleration(spec):
    """How long a pod stays on an unreachable node. None in the manifest means the default of Kubernetes."""
    for entry in spec.get("tolerations", []):
        if entry.get("key") == "node.kubernetes.io/unreachable" and entry.get("effect") == "NoExecute":
            return entry.get("tolerationSeconds", float("inf"))
    return TOLERATION_SECONDS
