"""Kubernetes objects: rendered by kustomize from an overlay of the bed, and indexed."""

import hashlib
import json
import os
import pathlib

import yaml

from programs import call, path_of

K8S = pathlib.Path(__file__).resolve().parent.parent.parent / "k8s"


def render(folder, tag, literals):
    """Renders base, Ingress and policies with images of a tag and settings of the ConfigMap."""
    settings = folder / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    relative = lambda path: os.path.relpath(K8S / path, folder)
    (settings / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1alpha1",
                "kind": "Component",
                "configMapGenerator": [
                    {
                        "name": "shortmint",
                        "behavior": "merge",
                        "options": {"immutable": True},
                        "literals": [f"{key}={value}" for key, value in literals.items()],
                    }
                ],
            }
        )
    )
    images = [f"shortmint-{name}" for name in ("issuer", "resolver")]
    (folder / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "namespace": "shortmint",
                "resources": [relative("base")],
                "components": [
                    "settings",
                    relative("components/ingress"),
                    relative("components/network-policies"),
                ],
                "images": [{"name": name, "newName": f"localhost/{name}", "newTag": tag} for name in images],
            }
        )
    )
    return render_folder(folder)


def render_folder(folder):
    """Renders any folder with a kustomization."""
    text = call(path_of("kubectl"), "kustomize", folder)
    return [found for found in yaml.safe_load_all(text) if found]


def name_of(found):
    return found["kind"], found["metadata"]["name"]


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


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
