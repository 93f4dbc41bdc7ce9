"""The network of the bed: one namespace per pod and per server outside of the cluster, all routed.

Packets between two namespaces cross the node's. There they meet the Services (nat) and the NetworkPolicies
(forward) with the addresses of the pods, as on a node of Kubernetes. Packets from the node itself, such as
probes, are not forwarded, and policies do not see them.
"""

import dataclasses
import ipaddress
import pathlib
import threading

import policies
from programs import call

NODE = "10.77.0.1"
# The namespace of hosts that are no pods.
OUTSIDE = ""
GATEWAY = "169.254.1.1"
CLUSTER_IPS = "10.96.0.0/16"


@dataclasses.dataclass
class Host:
    """A network namespace with an address."""

    name: str
    address: str
    interface: str
    namespace: str
    labels: dict


class Network:
    """Creates and removes hosts, and keeps the rules of the policies up to date."""

    def __init__(self):
        self.hosts, self.policies = {}, []
        self.lock = threading.RLock()
        self.count = 0
        self.addresses = ipaddress.ip_network("10.77.128.0/17").hosts()
        call("ip", "link", "set", "lo", "up")
        call("ip", "address", "add", f"{NODE}/32", "dev", "lo")
        # `ip netns` keeps its handles there: those of another run must not be met.
        pathlib.Path("/run/netns").mkdir(exist_ok=True)
        call("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        # Without `src`, connections of the node to a Service leave as 127.0.0.1.
        call("ip", "route", "add", CLUSTER_IPS, "dev", "lo", "src", NODE)

    def add(self, name, namespace, labels=None, address=None):
        """Creates a host, with the next free address unless one is given."""
        with self.lock:
            self.count += 1
            host = Host(name, address or str(next(self.addresses)), f"v{self.count}", namespace, labels or {})
            call("ip", "netns", "add", name)
            outside = [
                f"link add {host.interface} type veth peer name eth0 netns {name}",
                f"address add {GATEWAY}/32 dev {host.interface} scope link",
                f"link set {host.interface} up",
                f"route add {host.address}/32 dev {host.interface} src {NODE}",
            ]
            inside = [
                "link set lo up",
                "link set eth0 up",
                f"address add {host.address}/32 dev eth0",
                f"route add {GATEWAY} dev eth0 scope link",
                f"route add default via {GATEWAY}",
            ]
            call("ip", "-batch", "-", input="\n".join(outside) + "\n")
            call("ip", "-n", name, "-batch", "-", input="\n".join(inside) + "\n")
            self.hosts[name] = host
            self.enforce()
            return host

    def remove(self, host):
        """Deletes a host, its address and its interface."""
        with self.lock:
            if self.hosts.pop(host.name, None):
                call("ip", "netns", "delete", host.name)
                self.enforce()

    def cut(self, host):
        """Drops all packets of a host without an answer, as if its node had lost its power."""
        chains = "".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; policy drop; }}\n"
            for hook in ("input", "output")
        )
        rules = f"table inet cut {{\n{chains}}}\n"
        call("ip", "netns", "exec", host.name, "nft", "-f", "-", input=rules)

    def heal(self, host):
        """Takes back a cut, unless the host has gone meanwhile, as that of an evicted pod."""
        if self.hosts.get(host.name) is host:
            call("ip", "netns", "exec", host.name, "nft", "delete table inet cut")

    def set_policies(self, found):
        """Puts these NetworkPolicies into force."""
        with self.lock:
            self.policies = found
            self.enforce()

    def enforce(self):
        """Computes the rules again, for addresses that came or went."""
        names = {host.namespace for host in self.hosts.values()} - {OUTSIDE}
        # The label that Kubernetes gives to each namespace.
        namespaces = {name: {"kubernetes.io/metadata.name": name} for name in names}
        rules = policies.rules(self.policies, list(self.hosts.values()), namespaces)
        call("nft", "-f", "-", input=rules)
