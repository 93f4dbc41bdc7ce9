"""Scenario: tainted nodes, a spread that must hold (DoNotSchedule), an autoscaler, and a lost node."""

import time

import yaml

import objects
from autoscaler import Autoscaler
from journal import say
from report import Report
from scenarios import lost_node

RESOLVER = ("Deployment", "resolver")
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
MIN, MAX = 3, 6
# Small enough a request for one machine to reach the largest number of pods.
PRODUCTION = yaml.safe_load((objects.CHART / "values" / "production.yaml").read_text())
VALUES = {
    "topologySpreadConstraints": PRODUCTION["topologySpreadConstraints"],
    "resolver": {
        "autoscaling": {"enabled": True, "minReplicas": MIN, "maxReplicas": MAX},
        "databaseConnections": 20,
        "resources": {"requests": {"cpu": "100m"}},
    },
}


def run(bed, options):
    report = Report("spread")
    for name in ("control-a", "control-b", "control-c"):
        bed.cluster.nodes.add(name, CONTROL_PLANE)
    bed.cluster.scale(RESOLVER, MIN)
    bed.alter = ignore_taints if options.ignore_taints else None
    bed.install(options.tags[0], **VALUES)
    describe(bed, report, "installed")
    Autoscaler(bed.cluster)
    running = bed.begin_load(options.rate)
    grow(bed, report)
    node, _ = lost_node.node_to_lose(bed.cluster)
    say("losing", node)
    lost_at, lost = time.time(), bed.cluster.nodes.lose(node)
    report.row("lost", f"{node} with {', '.join(pod.name for pod in lost)}")
    capacity = lost_node.wait_for_capacity(bed, report, lost)
    back_at = time.time()
    describe(bed, report, f"back after {capacity:.1f} s")
    update(bed, report, options.tags[0])
    lost_node.bring_issuer_back(bed, report, lost)
    running.end()
    running.verify()
    report.load(running.results, failures_allowed=True)
    lost_node.check_failures(running.results, report, lost_at, back_at)
    return report


def ignore_taints(rendered):
    """What Kubernetes does by default: nodes that a pod may not run on count as empty."""
    for found in rendered:
        spec = found.get("spec", {}).get("template", {}).get("spec", {})
        for constraint in spec.get("topologySpreadConstraints", []):
            constraint.pop("nodeTaintsPolicy", None)
    return rendered


def describe(bed, report, what):
    """Notes how many pods each node has."""
    by_node = {}
    for pod in bed.cluster.of(RESOLVER):
        if pod.is_active and pod.is_ready:
            by_node[pod.node] = by_node.get(pod.node, 0) + 1
    report.row(what, "resolvers by node: " + ", ".join(f"{node} {by_node[node]}" for node in sorted(by_node)))
    tainted = [node for node in by_node if node.startswith("control")]
    report.require(not tainted, f"resolvers run on {tainted}, whose taint they do not tolerate")
    report.require(max(by_node.values()) - min(by_node.values()) <= 1, f"{what}: uneven, {by_node}")


def grow(bed, report):
    """The autoscaler reaches its largest number, two pods for each worker."""
    start = time.monotonic()
    full = lambda: bed.cluster.replicas(RESOLVER) == MAX and bed.cluster.rolled_out(*RESOLVER)
    bed.wait(f"{MAX} resolvers", full, 180)
    describe(bed, report, f"{MAX} after {time.monotonic() - start:.0f} s")


def update(bed, report, tag):
    """A rolling update on the nodes that are left."""
    changed = {**VALUES, "resolver": {**VALUES["resolver"], "podAnnotations": {"example.com/run": "2"}}}
    bed.apply(tag, **changed)
    resolvers = lambda: bed.cluster.rolled_out(*RESOLVER)
    start = time.monotonic()
    bed.wait("the update", resolvers, 300)
    bed.wait_former_pods()
    describe(bed, report, f"updated in {time.monotonic() - start:.0f} s")
