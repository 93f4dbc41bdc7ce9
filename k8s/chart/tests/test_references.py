"""What an object refers to exists: other objects, pods by labels, variables, and mounted folders."""

import re

import pytest
import yaml

from rendering import (
    CHART,
    SETS,
    containers,
    pod_of,
    pod_parent,
    rendered,
    run,
    title,
    variables,
    walk,
    workloads,
)

# Objects that an installation brings along.
EXTERNAL = {
    ("Secret", "shortmint"),
    ("Secret", "issuer-tls"),
    ("Secret", "issuer-etcd-tls"),
    ("Secret", "resolver-tls"),
    ("Secret", "public-tls"),
    ("Secret", "etcd-tls"),
    ("Secret", "postgres-tls"),
    ("ConfigMap", "authorities"),
}

every_set = pytest.mark.parametrize("name", SETS)


@every_set
def test_no_name_is_used_twice_and_all_objects_are_in_the_namespace_of_the_release(name):
    titles = [title(each) for each in rendered(name)]
    assert titles and len(set(titles)) == len(titles)
    assert {each["metadata"].get("namespace") for each in rendered(name)} == {"shortmint"}


@every_set
def test_every_object_that_another_needs_exists(name):
    defined = {(each["kind"], each["metadata"]["name"]) for each in rendered(name)}
    for each in rendered(name):
        missing = set(references(each)) - defined - EXTERNAL
        assert not missing, f"{title(each)} refers to {missing}"
        if each["kind"] == "StatefulSet":
            assert ("Service", each["spec"]["serviceName"]) in defined


@every_set
def test_every_selector_selects_pods(name):
    pods = [pod_parent(each)["template"]["metadata"]["labels"] for each in workloads(rendered(name))]
    for each in rendered(name):
        for selector in selectors(each):
            assert any(selector.items() <= labels.items() for labels in pods), title(each)


@every_set
def test_a_variable_is_defined_once_and_before_those_that_use_it(name):
    for container in (each for found in workloads(rendered(name)) for each in containers(found)):
        known = set()
        for variable in container.get("env", []):
            used = set(re.findall(r"\$\((\w+)\)", variable.get("value") or ""))
            assert used <= known, f"{variable['name']} uses {used - known} before it is defined"
            assert variable["name"] not in known, f"{variable['name']} is defined twice"
            known.add(variable["name"])


@every_set
def test_a_file_that_a_variable_names_is_in_a_mounted_folder(name):
    for found in workloads(rendered(name)):
        volumes = {each["name"] for each in pod_of(found).get("volumes", [])}
        volumes |= {each["metadata"]["name"] for each in found["spec"].get("volumeClaimTemplates", [])}
        for container in containers(found):
            mounts = container.get("volumeMounts", [])
            assert {each["name"] for each in mounts} <= volumes, title(found)
            folders = tuple(each["mountPath"] for each in mounts)
            for variable, value in variables(container).items():
                if value and value.startswith("/"):
                    assert value.startswith(folders), f"{title(found)}: {variable} is not in {folders}"


def test_make_secrets_makes_all_that_small_needs(tmp_path):
    done = run(CHART.parent / "make-secrets", tmp_path)
    assert done.returncode == 0, done.stderr
    made = [each for path in tmp_path.glob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
    keys = {(each["kind"], each["metadata"]["name"]): each.get("stringData") or each["data"] for each in made}
    defined = {(each["kind"], each["metadata"]["name"]) for each in rendered("small")}
    for found in workloads(rendered("small")):
        assert set(references(found)) <= defined | keys.keys(), title(found)
        sources = [each["secret"] for each in pod_of(found)["volumes"] if "secret" in each]
        wanted = {(each["secretName"], item["key"]) for each in sources for item in each.get("items", [])}
        for container in containers(found):
            for variable in container.get("env", []):
                if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                    wanted.add((reference["name"], reference["key"]))
        assert all(key in keys["Secret", name] for name, key in wanted), title(found)


def selectors(each):
    """Yields the labels by which an object selects pods of its own namespace."""
    spec = each.get("spec", {})
    if each["kind"] == "Service":
        yield spec["selector"]
    elif each["kind"] == "NetworkPolicy":
        yield spec["podSelector"]["matchLabels"]
    elif each["kind"] in ("PodDisruptionBudget", "Deployment", "StatefulSet", "PodMonitor"):
        yield spec["selector"]["matchLabels"]


def references(each):
    """Yields the kind and the name of every object that this one needs."""
    for path, value in walk(each):
        last, parent = path[-1], path[-2] if len(path) > 1 else None
        if last == "name" and parent in ("configMapKeyRef", "configMapRef", "configMap"):
            yield "ConfigMap", value
        elif (parent, last) in (("secret", "secretName"), ("secretKeyRef", "name")):
            yield "Secret", value
        elif last == "serviceAccountName":
            yield "ServiceAccount", value
        elif last == "name" and (parent == "service" or "backendRefs" in path):
            yield "Service", value
        elif last == "name" and parent == "scaleTargetRef":
            yield each["spec"]["scaleTargetRef"]["kind"], value
