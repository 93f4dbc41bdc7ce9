"""Scenario: every pair of pods, servers and ports, against the drawn arrows of k8s/chart/tests/arrows.yaml.

Here a listener on all ports stands for each workload, in a namespace with the labels of its pods. That real
containers can do their work under the policies is part of the other scenarios.
"""

import json
import pathlib
import subprocess
import sys

import yaml

import objects
from journal import say
from network import OUTSIDE, Network
from programs import Server, call
from report import Report

REACH = pathlib.Path(__file__).resolve().parent.parent / "reach.py"
RELEASE = "shortmint"
PORTS = [53, 80, 443, 2379, 2380, 2381, 5432, 7070, 7071, 8080, 8081, 9090]
# Servers beside the release: a name, a namespace of the cluster or none, labels, and an address outside.
OTHERS = [
    ("kube-dns", "kube-system", {"k8s-app": "kube-dns"}, None),
    ("api-server", "kube-system", {}, None),
    ("prometheus", "monitoring", {}, None),
    ("controller", "ingress-nginx", {}, None),
    ("store", "stores", {}, None),
    ("stranger", "default", {}, None),
    ("internet", OUTSIDE, {}, "203.0.113.10"),
    ("private", OUTSIDE, {}, "192.168.7.7"),
]


def run(options, scratch):
    """Checks one value set after another."""
    report = Report("policy")
    network = Network()
    drawn = yaml.safe_load((objects.CHART / "tests" / "arrows.yaml").read_text())
    for name in options.set:
        say("value set", name)
        rendered = objects.render(objects.CHART / "values" / f"{name}.yaml")
        hosts = [
            *release_hosts(network, rendered),
            *(network.add(n, ns, labels, address) for n, ns, labels, address in OTHERS),
        ]
        network.set_policies(objects.of_kind(rendered, "NetworkPolicy"))
        arrows = [parse(text) for text in drawn[name]]
        compare(report, name, hosts, arrows, measure(hosts, scratch))
        network.set_policies([])
        for host in hosts:
            network.remove(host)
    return report


def release_hosts(network, rendered):
    """Two hosts for each workload with several replicas, because a pod may also call its like."""
    found = []
    for workload in rendered:
        spec = workload.get("spec", {})
        spec = spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec
        if "template" in spec:
            labels = spec["template"]["metadata"]["labels"]
            name = labels["app.kubernetes.io/name"]
            count = 1 if workload["kind"] in ("Job", "CronJob") else 2
            found += [network.add(f"{name}.{number}", RELEASE, labels) for number in range(count)]
    return found


def parse(text):
    """Returns source, target and ports of an arrow such as `resolver -> issuer 7070`."""
    source, rest = text.split(" -> ")
    target, ports = rest.rsplit(" ", 1)
    return source, target, {int(port) for port in ports.split(",")}


def workload(host):
    """The name of a pod of the release, or None."""
    return host.labels["app.kubernetes.io/name"] if host.namespace == RELEASE else None


def is_peer(text, host):
    """Whether the end of an arrow includes this host."""
    if "but private networks" in text:
        return host.name == "internet" and text.startswith("0.0.0.0/0")
    if text == "any" or text == workload(host):
        return True
    namespace, _, name = text.partition("/")
    return host.namespace == namespace and name in ("", host.name)


def is_drawn(arrows, source, target, port):
    """Whether both ends allow it: the egress of a pod of the release, and the ingress of one."""
    leaves = not workload(source) or any(
        a == workload(source) and is_peer(b, target) and port in ports for a, b, ports in arrows
    )
    enters = not workload(target) or any(
        b == workload(target) and is_peer(a, source) and port in ports for a, b, ports in arrows
    )
    return leaves and enters


def measure(hosts, scratch):
    """Returns the pairs that can connect: (source, target, protocol, port)."""
    ports = [str(port) for port in PORTS]
    inside = lambda host, *rest: ["ip", "netns", "exec", host.name, sys.executable, REACH, *rest]
    servers = [
        Server(host.name, inside(host, "listen", *ports), scratch / "logs" / f"{host.name}.log")
        for host in hosts
    ]
    try:
        for host in hosts:
            # From the node, which no policy stops.
            call(sys.executable, REACH, "wait", host.address, *ports)
        clients = []
        for source in hosts:
            others = [host.address for host in hosts if host is not source]
            command = [str(part) for part in inside(source, "connect", ",".join(others), *ports)]
            clients.append((source, subprocess.Popen(command, stdout=subprocess.PIPE, text=True)))
        by_address = {host.address: host.name for host in hosts}
        return {
            (source.name, by_address[address], protocol, port)
            for source, client in clients
            for address, protocol, port in json.loads(client.communicate(timeout=60)[0])
        }
    finally:
        for server in servers:
            server.stop()


def compare(report, name, hosts, arrows, connected):
    """Compares what connects with what is drawn, for pairs with a pod of the release."""
    pairs = expected = 0
    used = set()
    for source in hosts:
        for target in hosts:
            if source is target or not (workload(source) or workload(target)):
                continue
            for protocol, port in [*(("tcp", port) for port in PORTS), ("udp", 53)]:
                pairs += 1
                drawn, found = (
                    is_drawn(arrows, source, target, port),
                    (source.name, target.name, protocol, port) in connected,
                )
                expected += drawn
                text = f"{name}: {source.name} -> {target.name} {protocol} {port}"
                report.require(
                    drawn == found, f"{text} is {'drawn and cut' if drawn else 'open and not drawn'}"
                )
                if drawn and found:
                    used |= {
                        i
                        for i, (a, b, ports) in enumerate(arrows)
                        if is_peer(a, source) and is_peer(b, target) and port in ports
                    }
    unused = [arrows[i] for i in range(len(arrows)) if i not in used and not arrows[i][1].startswith("::")]
    report.require(not unused, f"{name}: nothing used the arrows {unused}")
    report.row(name, f"{pairs:,} pairs, {expected} drawn and open, {pairs - expected} cut")
