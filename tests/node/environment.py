"""The environment of a container, in the order of its manifest."""

import re


def of(container, pod, cluster):
    """Returns the variables of a container, `$(NAME)` of earlier ones replaced."""
    if "envFrom" in container:
        raise ValueError("envFrom is not known here")
    found = {}
    for entry in container.get("env", []):
        value = (
            expand(entry["value"], found)
            if "value" in entry
            else reference(entry.get("valueFrom"), pod, cluster)
        )
        if value is not None:
            found[entry["name"]] = value
    return found


def expand(text, variables):
    """Replaces `$(NAME)`; an unknown name stays, and `$$` stands for one `$`."""
    known = lambda match: "$" if match[0] == "$$" else variables.get(match[1], match[0])
    return re.sub(r"\$\$|\$\(([\w.-]+)\)", known, text)


def reference(source, pod, cluster):
    """Returns the value that `valueFrom` names; None for an optional one that is absent."""
    if source is None:
        return ""
    if "fieldRef" in source:
        fields = {
            "metadata.name": pod.name,
            "metadata.namespace": pod.namespace,
            "status.podIP": pod.host.address,
            "spec.nodeName": pod.node,
        }
        return fields[source["fieldRef"]["fieldPath"]]
    kind, key = ("Secret", "secretKeyRef") if "secretKeyRef" in source else ("ConfigMap", "configMapKeyRef")
    data = cluster.data(kind, source[key]["name"])
    if data is None or source[key]["key"] not in data:
        if source[key].get("optional"):
            return None
        raise ValueError(f"{kind} {source[key]['name']}: no key {source[key]['key']}")
    return data[source[key]["key"]]
