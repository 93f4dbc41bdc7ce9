"""The connections that the network policies allow are those of arrows.yaml, and no others."""

import pytest
import yaml

from rendering import TESTS, pod_parent, rendered, workloads

ARROWS = yaml.safe_load((TESTS / "arrows.yaml").read_text())


@pytest.mark.parametrize("name", ARROWS)
def test_only_the_drawn_connections_are_allowed(name):
    assert sorted(allowed_arrows(rendered(name))) == sorted(ARROWS[name])


def allowed_arrows(objects):
    """Returns connections as "FROM -> TO PORT,…". Both ends have to allow one between pods of the release."""
    templates = [pod_parent(each)["template"] for each in workloads(objects)]
    pods = {
        each["metadata"]["labels"]["app.kubernetes.io/name"]: each["metadata"]["labels"] for each in templates
    }
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    ends = {"ingress": set(), "egress": set()}
    for pod, labels in pods.items():
        mine = [policy for policy in policies if matches(policy["podSelector"], labels)]
        for direction, side in ("ingress", "from"), ("egress", "to"):
            if not any(direction.title() in policy["policyTypes"] for policy in mine):
                ends[direction].add((pod, "any", "any"))
            for rule in (rule for policy in mine for rule in policy.get(direction, [])):
                ports = ",".join(str(port["port"]) for port in rule["ports"])
                peers = [peer for each in rule.get(side, [None]) for peer in peers_of(each, pods)]
                ends[direction] |= {(pod, peer, ports) for peer in peers}
    arrows = {f"{peer} -> {pod} {ports}" for pod, peer, ports in ends["ingress"] if peer not in pods}
    arrows |= {f"{pod} -> {peer} {ports}" for pod, peer, ports in ends["egress"] if peer not in pods}
    for pod, peer, ports in ends["egress"]:
        if peer in pods and (peer, pod, ports) in ends["ingress"]:
            arrows.add(f"{pod} -> {peer} {ports}")
    return arrows


def peers_of(peer, pods):
    if peer is None:
        return ["any"]
    if "ipBlock" in peer:
        return [peer["ipBlock"]["cidr"] + (" but private networks" if peer["ipBlock"].get("except") else "")]
    if "namespaceSelector" in peer:
        namespace = peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        return ["/".join([namespace, *peer.get("podSelector", {}).get("matchLabels", {}).values()])]
    return [pod for pod, labels in pods.items() if matches(peer["podSelector"], labels)]


def matches(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items()
