"""The scheduler: which node a pod may run on, by taints, selectors and spread constraints.

It follows kube-scheduler 1.32 for the fields that the manifests use. Nothing here has an effect.
"""

import dataclasses

HOSTNAME = "kubernetes.io/hostname"
# The label that a Deployment gives to the pods of one revision.
REVISION = "pod-template-hash"
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
KNOWN = {
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "labelSelector",
    "matchLabelKeys",
    "nodeTaintsPolicy",
    "nodeAffinityPolicy",
}


@dataclasses.dataclass
class Node:
    """A machine of the cluster."""

    name: str
    labels: dict = dataclasses.field(default_factory=dict)
    taints: list = dataclasses.field(default_factory=list)
    is_gone: bool = False

    def __post_init__(self):
        self.labels = {HOSTNAME: self.name, **self.labels}


def tolerates(spec, node):
    """Whether a pod may be put on a node with these taints."""
    taints = [taint for taint in node.taints if taint["effect"] in ("NoSchedule", "NoExecute")]
    return all(any(matches(entry, taint) for entry in spec.get("tolerations", [])) for taint in taints)


def matches(toleration, taint):
    """Whether one toleration covers one taint."""
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key", taint["key"]) == taint["key"]
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration.get("key") == taint["key"] and same


def place(spec, labels, nodes, pods):
    """Returns the node for a pod, or None with the reason why it stays pending.

    `pods` have `node`, `labels`, `revision` and `is_active`; `labels` has the revision as pod-template-hash.
    """
    selected = [node for node in nodes if spec.get("nodeSelector", {}).items() <= node.labels.items()]
    fit = [node for node in selected if tolerates(spec, node) and not node.is_gone]
    if not fit:
        return None, "no node without a taint that the pod does not tolerate"
    hard, soft = [], []
    for constraint in spec.get("topologySpreadConstraints", []):
        if unknown := set(constraint) - KNOWN:
            raise ValueError(f"topologySpreadConstraints with {sorted(unknown)} are not known here")
        if constraint.get("nodeAffinityPolicy", "Honor") != "Honor":
            raise ValueError("nodeAffinityPolicy: Ignore is not known here")
        (hard if constraint["whenUnsatisfiable"] == "DoNotSchedule" else soft).append(constraint)
    for constraint in hard:
        counts = domains(constraint, spec, labels, selected, pods)
        least = min(counts.values(), default=0)
        topology = constraint["topologyKey"]
        fit = [node for node in fit if is_even(node, topology, counts, least, constraint["maxSkew"])]
        if not fit:
            return None, f"no node within maxSkew {constraint['maxSkew']} of {topology}: {counts}"
    return min(fit, key=lambda node: crowd(node, soft, spec, labels, selected, pods)), None


def is_even(node, topology, counts, least, skew):
    """Whether one more pod there keeps the skew."""
    return topology in node.labels and counts.get(node.labels[topology], 0) + 1 - least <= skew


def domains(constraint, spec, labels, nodes, pods):
    """Counts the pods that a constraint selects, by each value of its topology.

    With nodeTaintsPolicy Ignore, which is the default of Kubernetes, nodes count whose taints keep the pod
    away. Such a node is empty for ever, so that no other may have more than `maxSkew` pods.
    """
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
        nodes = [node for node in nodes if tolerates(spec, node)]
    topology = constraint["topologyKey"]
    values = {node.name: node.labels[topology] for node in nodes if topology in node.labels}
    wanted = dict(constraint["labelSelector"]["matchLabels"])
    wanted |= {key: labels[key] for key in constraint.get("matchLabelKeys", []) if key in labels}
    counts = dict.fromkeys(values.values(), 0)
    for pod in pods:
        if pod.is_active and pod.node in values and wanted.items() <= pod.all_labels().items():
            counts[values[pod.node]] += 1
    return counts


def crowd(node, soft, spec, labels, nodes, pods):
    """What the scheduler scores: pods alike in each soft topology, then all pods of the node."""
    alike = 0
    for constraint in soft:
        counts = domains(constraint, spec, labels, nodes, pods)
        alike += counts.get(node.labels.get(constraint["topologyKey"]), 0)
    on_it = [pod for pod in pods if pod.node == node.name and pod.is_active]
    own = sum(pod.labels.items() <= labels.items() for pod in on_it)
    return alike, own, len(on_it)
