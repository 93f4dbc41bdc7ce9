"""The cluster: the objects that were applied, its nodes, its pods, and the loop of its controllers."""

import random
import threading
import time

import admission
import controllers
import objects
import scheduler
from journal import say
from nodes import Nodes
from pod import Pod
from programs import Failed

LOOP_SECONDS = 0.1
NODES = ("node-a", "node-b", "node-c")
PART_OF = ("app.kubernetes.io/part-of", "shortmint")


class Cluster:
    """An API server and its controllers, in one process with the kubelets."""

    def __init__(self, scratch, network, names, nodes=NODES):
        self.scratch, self.network, self.names = scratch, network, names
        self.namespace = "shortmint"
        self.objects, self.pods, self.results = {}, [], {}
        self.scales, self.reasons, self.doomed = {}, {}, set()
        self.is_restricted = False
        self.nodes = Nodes(self, nodes)
        self.listeners = []
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self.loop = threading.Thread(target=self.control, daemon=True)
        self.loop.start()

    def apply(self, rendered, prune=False):
        """One `kubectl apply`. Pruning removes the objects of the project that left the manifests."""
        with self.lock:
            if refused := [self.refusal(found) for found in rendered if self.refusal(found)]:
                raise Failed("the API server refuses the apply: " + "; ".join(refused))
            done = {objects.name_of(found): self.put(found) for found in rendered}
            if prune:
                for key, found in list(self.objects.items()):
                    if key not in done and found["metadata"].get("labels", {}).get(PART_OF[0]) == PART_OF[1]:
                        self.remove(key)
                        done[key] = "pruned"
        self.renew(done)
        changes = [
            f"{kind}/{name} {change}" for (kind, name), change in done.items() if change != "unchanged"
        ]
        say("applied:", ", ".join(changes) if changes else "nothing has changed")
        return done

    def refusal(self, found):
        old = self.objects.get(objects.name_of(found))
        reason = old and objects.immutable_change(old, found)
        if self.is_restricted and (spec := objects.pod_spec(found)):
            reason = reason or "; ".join(admission.violations(spec))
        return reason and f"{found['kind']}/{found['metadata']['name']}: {reason}"

    def put(self, found):
        key = objects.name_of(found)
        change = "created" if key not in self.objects else "configured"
        if self.objects.get(key) == found:
            return "unchanged"
        self.objects[key] = found
        if "replicas" in found.get("spec", {}):
            self.scales.pop(key, None)
        return change

    def scale(self, key, replicas):
        """Sets the replicas of a workload, as `kubectl scale` and autoscalers do."""
        say(key[1], "has", replicas, "replicas")
        self.scales[key] = replicas

    def scaled(self, key, spec):
        """The spec of a workload with its present number of replicas."""
        return {**spec, "replicas": self.scales[key]} if key in self.scales else spec

    def replicas(self, key):
        return self.scaled(key, self.objects[key]["spec"]).get("replicas", 1)

    def remove(self, key):
        """Deletes an object and its pods."""
        with self.lock:
            self.objects.pop(key)
            self.results.pop(key, None)
            owned = [pod for pod in self.pods if pod.owner == key]
        for pod in owned:
            pod.delete()

    def renew(self, done):
        """Updates policies, and the files of Secrets and ConfigMaps in running pods."""
        kinds = {kind for (kind, _), change in done.items() if change != "unchanged"}
        if "NetworkPolicy" in kinds:
            self.network.set_policies(self.of_kind("NetworkPolicy"))
        if kinds & {"Secret", "ConfigMap"}:
            for pod in self.running():
                pod.volumes.project()
        self.changed()

    def running(self):
        with self.lock:
            return [pod for pod in self.pods if pod.is_active and pod.volumes and not pod.is_lost]

    def data(self, kind, name):
        """Returns the data of a Secret or ConfigMap, or None."""
        found = self.objects.get((kind, name))
        return found and found.get("data", found.get("stringData", {}))

    def of_kind(self, kind):
        with self.lock:
            return objects.of_kind(list(self.objects.values()), kind)

    def changed(self):
        """Tells the listeners that a pod or an object has changed."""
        for listener in self.listeners:
            listener()

    def of(self, owner):
        """The pods of a workload."""
        with self.lock:
            return [pod for pod in self.pods if pod.owner == owner]

    def control(self):
        """Runs each controller again and again, as they are level-triggered."""
        while not self.ended.wait(LOOP_SECONDS):
            try:
                with self.lock:
                    self.nodes.check()
                    self.pods = [pod for pod in self.pods if not pod.gone.is_set() or pod.owner[0] == "Job"]
                    self.pods = [
                        pod for pod in self.pods if pod.owner in self.objects or not pod.gone.is_set()
                    ]
                    for key, found in list(self.objects.items()):
                        if key[0] in ("Deployment", "StatefulSet", "Job"):
                            self.reconcile(key, found)
            except Exception as error:  # The loop must go on; the scenario sees that nothing happens.
                say("controllers:", repr(error))

    def reconcile(self, key, found):
        kind, name = key
        found = {**found, "spec": self.scaled(key, found["spec"])}
        pods, revision = [pod for pod in self.pods if pod.owner == key], objects.revision(found)
        fresh = lambda: f"{name}-{revision[:6]}-{random.randbytes(3).hex()}"
        if kind == "Deployment":
            step = controllers.deployment(found["spec"], pods, revision, fresh)
        elif kind == "StatefulSet":
            step = controllers.stateful_set(name, found["spec"], pods, revision)
        else:
            step = self.job_step(key, found["spec"], pods, lambda: f"{name}-{random.randbytes(3).hex()}")
        for pod in step.delete:
            pod.delete()
        self.reasons.pop(key, None)
        for pod_name in step.create:
            self.create(pod_name, key, found["spec"], revision)

    def create(self, pod_name, key, spec, revision):
        """Creates a pod on the node that the scheduler chooses. Without one it waits for the next round."""
        template = spec["template"]
        labels = {**template["metadata"]["labels"], scheduler.REVISION: revision}
        node, reason = self.nodes.place(template["spec"], labels)
        if node is None:
            self.reasons[key] = reason
            return
        claims = [entry["metadata"]["name"] for entry in spec.get("volumeClaimTemplates", [])]
        pod = Pod(pod_name, template, key, revision, node.name, self, claims)
        say(pod_name, "is created on", node.name)
        self.pods.append(pod)

    def job_step(self, key, spec, pods, new_name):
        """Notes the end of a Job, and removes it after `ttlSecondsAfterFinished`."""
        if (result := controllers.job_result(spec, pods)) and key not in self.results:
            self.results[key] = (result, time.monotonic())
            say(key[1], "is", result)
        if key in self.results and "ttlSecondsAfterFinished" in spec:
            if time.monotonic() - self.results[key][1] >= spec["ttlSecondsAfterFinished"]:
                self.remove(key)
        return controllers.job(spec, pods, new_name)

    def expire_jobs(self):
        """Removes finished Jobs, as an hour later."""
        for key in list(self.results):
            say(key[1], "is removed, as after its ttlSecondsAfterFinished")
            self.remove(key)

    def force_delete(self, pod):
        """What a person does about a pod of a lost node: `kubectl delete pod --force`."""
        say(pod.name, "is deleted by force")
        pod.deleted_at = pod.deleted_at or time.monotonic()
        pod.gone.set()
        self.changed()

    def rolled_out(self, kind, name):
        """Whether a workload runs its present template in all replicas."""
        key = (kind, name)
        with self.lock:
            found = self.objects[key]
            spec = self.scaled(key, found["spec"])
            return controllers.is_rolled_out(kind, spec, self.of(key), objects.revision(found))

    def stop(self):
        """Deletes all pods, those first that use others."""
        self.ended.set()
        self.loop.join()
        for kind in ("Deployment", "Job", "StatefulSet"):
            chosen = [pod for pod in self.pods if pod.owner[0] == kind and not pod.is_lost]
            for pod in chosen:
                pod.delete()
            for pod in chosen:
                if not pod.gone.wait(pod.grace() + 20):
                    say(pod.name, "does not end")
