"""Kubernetes objects: rendered by helm from the chart, and indexed."""

import hashlib
import json
import pathlib

import yaml

from programs import call, path_of

K8S = pathlib.Path(__file__).resolve().parent.parent.parent / "k8s"
CHART = K8S / "chart"
RELEASE = NAMESPACE = "shortmint"


def render(values, more=None):
    """Renders the chart with a file of values, and a dictionary of values that override it."""
    command = [path_of("helm"), "template", RELEASE, CHART, "--namespace", NAMESPACE]
    text = call(*command, "--values", values, "--values", "-", input=json.dumps(more or {}))
    return [found for found in yaml.safe_load_all(text) if found]


def name_of(found):
    return found["kind"], found["metadata"]["name"]


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


def pod_spec(workload):
    """The spec of the pods of a workload or of a CronJob; None for other objects."""
    spec = workload.get("spec", {}).get("jobTemplate", workload).get("spec", {})
    return spec.get("template", {}).get("spec")


def revision(workload):
    """The hash of a pod template: pods of another one are replaced."""
    template = json.dumps(workload["spec"]["template"], sort_keys=True)
    return hashlib.sha256(template.encode()).hexdigest()[:10]


def immutable_change(old, new):
    """Returns the reason for which a real API server would refuse the change, or None."""
    if old.get("immutable") and old.get("data") != new.get("data"):
        return "an immutable object keeps its data"
    fields = {
        "Job": ("template", "selector"),
        "Deployment": ("selector",),
        "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
    }
    for field in fields.get(old["kind"], ()):
        if old["spec"].get(field) != new["spec"].get(field):
            return f"spec.{field} cannot be changed"
    return None
