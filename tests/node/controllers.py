"""Controllers: what the next step of a Deployment, a StatefulSet and a Job is, from objects and pods alone.

Each function returns decisions and changes nothing. They follow the controllers of Kubernetes 1.32 for the
fields that the manifests use.
"""

import dataclasses
import math
import time

from quantities import share

JOB_BACKOFF_SECONDS, JOB_BACKOFF_SECONDS_MAX = 10, 360


@dataclasses.dataclass
class Step:
    """What to do now: names of pods to create, and pods to delete."""

    create: list = dataclasses.field(default_factory=list)
    delete: list = dataclasses.field(default_factory=list)


def deployment(spec, pods, revision, new_name):
    """Rolls by `maxSurge` and `maxUnavailable`, and replaces pods that failed or were deleted."""
    replicas, least = spec.get("replicas", 1), spec.get("minReadySeconds", 0)
    rolling = spec.get("strategy", {}).get("rollingUpdate", {})
    surge = share(rolling.get("maxSurge", "25%"), replicas, math.ceil)
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas)
    active = [pod for pod in pods if pod.is_active]
    new = [pod for pod in active if pod.revision == revision]
    old = [pod for pod in active if pod.revision != revision]
    step = Step(delete=[pod for pod in pods if pod.phase == "Failed" and pod.deleted_at is None])
    room = min(replicas - len(new), replicas + surge - len(active))
    step.create = [new_name() for _ in range(max(0, room))]
    # Those that are not ready go first.
    step.delete += sorted(new, key=lambda pod: not pod.is_ready)[replicas:]
    step.delete += removable(old, new, active, replicas - unavailable, least)
    return step


def removable(old, new, active, available_min, least):
    """Returns pods of former revisions that may go: unhealthy ones first, then as many as are spare."""
    missing = sum(not pod.is_available(least) for pod in new)
    room = len(active) - available_min - missing
    unhealthy = [pod for pod in old if not pod.is_available(least)][: max(0, room)]
    available = [pod for pod in active if pod.is_available(least)]
    spare = max(0, min(len(available) - available_min, room - len(unhealthy)))
    return unhealthy + [pod for pod in old if pod.is_available(least)][:spare]


def stateful_set(name, spec, pods, revision):
    """Creates missing ordinals, then updates from the highest down, one at a time."""
    replicas, least = spec.get("replicas", 1), spec.get("minReadySeconds", 0)
    by_name = {pod.name: pod for pod in pods}
    ordinals = [f"{name}-{ordinal}" for ordinal in range(replicas)]
    step = Step(delete=[pod for pod in pods if pod.phase == "Failed" and pod.deleted_at is None])
    step.delete += [pod for pod in pods if pod.name not in ordinals and pod.deleted_at is None]
    missing = [ordinal for ordinal in ordinals if ordinal not in by_name]
    if spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady":
        # Nothing follows a pod that is not ready, not even its own correction.
        first = next((o for o in ordinals if o not in by_name or not by_name[o].is_available(least)), None)
        if first:
            step.create = [first] if first in missing else []
            return step
    step.create = missing
    for ordinal in reversed(ordinals):
        pod = by_name.get(ordinal)
        if pod and pod.revision != revision and pod.deleted_at is None:
            step.delete.append(pod)
            break
        if not pod or not pod.is_available(least):
            break
    return step


def job(spec, pods, new_name):
    """One pod until one succeeds, with growing pauses, up to `backoffLimit` failures."""
    failed = [pod for pod in pods if pod.phase == "Failed"]
    if job_result(spec, pods) or any(pod.is_active for pod in pods):
        return Step()
    pause = min(JOB_BACKOFF_SECONDS * 2 ** (len(failed) - 1), JOB_BACKOFF_SECONDS_MAX) if failed else 0
    if failed and time.monotonic() - max(pod.created_at for pod in failed) < pause:
        return Step()
    return Step(create=[new_name()])


def job_result(spec, pods):
    """Returns "complete", "failed", or None while it runs."""
    if any(pod.phase == "Succeeded" for pod in pods):
        return "complete"
    failures = sum(pod.phase == "Failed" for pod in pods)
    return "failed" if failures > spec.get("backoffLimit", 6) else None


def is_rolled_out(kind, spec, pods, revision):
    """What `kubectl rollout status` waits for."""
    least, replicas = spec.get("minReadySeconds", 0), spec.get("replicas", 1)
    updated = [pod for pod in pods if pod.is_active and pod.revision == revision]
    others = [pod for pod in pods if pod.is_active and pod.revision != revision]
    complete = len(updated) == replicas and not others and all(pod.is_available(least) for pod in updated)
    return complete and (kind != "StatefulSet" or len(pods) == replicas)
