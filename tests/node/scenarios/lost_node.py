"""Scenario: a node with a resolver and the leading issuer is lost, without a word and for good."""

import time
import urllib.request

import nodes
from journal import say
from report import Report

# A new pod is scheduled, started, and ready for `minReadySeconds`.
START_SECONDS = 45
AFTERWARDS_SECONDS = 10


def run(bed, options):
    """Waits for what Kubernetes and the platform do by themselves."""
    report = Report("lost-node")
    bed.install(options.tags[0])
    load = bed.begin_load(options.rate, wrk=False)
    time.sleep(5)
    node, leads = node_to_lose(bed.cluster)
    report.row("lost", f"{node}, " + ("with the leading issuer" if leads else "without the leading issuer"))
    say("losing", node)
    lost_at, lost = time.time(), bed.cluster.nodes.lose(node)
    report.row("its pods", ", ".join(pod.name for pod in lost))
    capacity = wait_for_capacity(bed, report, lost)
    back_at = time.time()
    time.sleep(AFTERWARDS_SECONDS)
    bring_issuer_back(bed, report, lost)
    load.end()
    load.verify()
    report.load(load.results, failures_allowed=True)
    check_failures(load.results, report, lost_at, back_at)
    report.row("capacity", f"back after {capacity:.1f} s, without a person")
    return report


def node_to_lose(found):
    """Returns a node with a resolver and an issuer, the leading one if possible, and whether it leads."""
    resolvers = {pod.node for pod in found.of(("Deployment", "resolver"))}
    issuers = [pod for pod in found.of(("StatefulSet", "issuer")) if pod.node in resolvers]
    leading = [pod for pod in issuers if is_leader(pod)]
    return (leading or issuers)[0].node, bool(leading)


def is_leader(pod):
    with urllib.request.urlopen(f"http://{pod.host.address}:7071/metrics", timeout=5) as page:
        return any(line.split() == ["issuer_leader", "1"] for line in page.read().decode().splitlines())


def wait_for_capacity(bed, report, lost):
    """Waits until all replicas of the Deployment are available on other nodes."""
    start, patience = time.monotonic(), nodes.NODE_GRACE_SECONDS + START_SECONDS
    resolver = next(pod for pod in lost if pod.owner == ("Deployment", "resolver"))
    patience += nodes.toleration(resolver.spec)
    bed.wait("the lost resolver to be replaced", lambda: resolver.deleted_at is not None, patience)
    report.row("resolver", f"deleted by the node controller after {time.monotonic() - start:.1f} s")
    bed.wait("the capacity", lambda: bed.cluster.rolled_out("Deployment", "resolver"), patience)
    return time.monotonic() - start


def bring_issuer_back(bed, report, lost):
    """The pod of a StatefulSet stays with its lost node until a person deletes it (k8s/README.md)."""
    issuer = next(pod for pod in lost if pod.owner == ("StatefulSet", "issuer"))
    present = [pod for pod in bed.cluster.of(issuer.owner) if not pod.is_lost]
    report.row("issuers", f"{len(present)} of 3 until {issuer.name} is deleted by force")
    report.require(len(present) == 2, "the lost issuer was replaced while its node might still run it")
    bed.cluster.force_delete(issuer)
    bed.wait("the issuer", lambda: bed.cluster.rolled_out("StatefulSet", "issuer"), 60)


def check_failures(results, report, lost_at, back_at):
    """Requests fail while the proxy still sends some to the lost node, and none after that."""
    times = sorted(at for name in ("creates", "checks") for at in results[name].pop("failed_at"))
    if times:
        report.row(
            "failures", f"from {times[0] - lost_at:.1f} s to {times[-1] - lost_at:.1f} s after the loss"
        )
        report.require(times[0] >= lost_at, "requests failed before the loss")
        report.require(times[-1] < back_at, "requests failed after the capacity was back")
