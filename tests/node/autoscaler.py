"""The HorizontalPodAutoscaler: the replicas of a Deployment, from the processor time that its pods use."""

import math
import os
import pathlib
import threading
import time

from journal import say
from quantities import processors

# Of the controller of Kubernetes: its period, the deviation that it ignores, and how long a peak counts.
PERIOD_SECONDS, TOLERANCE, STABILIZATION_SECONDS = 15, 0.1, 300
TICKS = os.sysconf("SC_CLK_TCK")


def desired(replicas, utilization, spec):
    """Returns the number of replicas for a mean utilization, as a share of the requests in percent."""
    target = spec["metrics"][0]["resource"]["target"]["averageUtilization"]
    ratio = utilization / target
    wanted = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(replicas * ratio)
    # It at most doubles, or adds four pods, in one period.
    wanted = min(wanted, max(2 * replicas, replicas + 4))
    return min(max(wanted, spec.get("minReplicas", 1)), spec["maxReplicas"])


class Autoscaler:
    """Measures every period, and scales the Deployment of each autoscaler that was applied."""

    def __init__(self, cluster, period=PERIOD_SECONDS):
        self.cluster, self.period = cluster, period
        self.used, self.recommended = {}, []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.cluster.ended.wait(self.period):
            for found in self.cluster.of_kind("HorizontalPodAutoscaler"):
                self.step(found["spec"])

    def step(self, spec):
        if len(spec["metrics"]) != 1 or spec["metrics"][0]["resource"]["name"] != "cpu":
            raise ValueError("autoscalers of anything but the processor are not known here")
        key = (spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"])
        replicas = self.cluster.replicas(key)
        shares = [share for pod in self.cluster.of(key) if (share := self.utilization(pod)) is not None]
        if not shares:
            return
        now, mean = time.monotonic(), sum(shares) / len(shares)
        self.recommended.append((now, desired(replicas, mean, spec)))
        self.recommended = [entry for entry in self.recommended if now - entry[0] < STABILIZATION_SECONDS]
        # It grows at once, and shrinks to the largest number that was right within the last minutes.
        wanted = self.recommended[-1][1]
        if wanted < replicas:
            wanted = min(replicas, max(count for _, count in self.recommended))
        if wanted != replicas:
            say(f"autoscaler: {key[1]} at {mean:.0f} %, from {replicas} to {wanted} replicas")
            self.cluster.scale(key, wanted)

    def utilization(self, pod):
        """Processor time since the last period as a share of the request, in percent; None at first."""
        if not (pod.is_active and pod.is_ready):
            return None
        try:
            fields = pathlib.Path(f"/proc/{pod.container.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return None
        now, used = time.monotonic(), (int(fields[11]) + int(fields[12])) / TICKS
        before = self.used.get(pod.name)
        self.used[pod.name] = (now, used)
        if before is None:
            return None
        request = processors(pod.spec["containers"][0]["resources"]["requests"]["cpu"])
        return 100 * (used - before[1]) / (now - before[0]) / request
