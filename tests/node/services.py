"""Services: endpoints that follow the pods after a delay, addresses by nft, and names by DNS."""

import queue
import threading
import time

from journal import say
from probes import port_number
from programs import call


class Services:
    """The endpoint controller and kube-proxy.

    Each change of a pod is published as it was, DELAY seconds later, because nodes and proxies of a real
    cluster learn of it late. Established connections keep their pod.
    """

    def __init__(self, cluster, delay):
        self.cluster, self.delay = cluster, delay
        self.addresses, self.published = {}, None
        self.waiting, self.order = queue.Queue(), threading.Lock()
        self.listeners = []
        cluster.listeners.append(self.notice)
        threading.Thread(target=self.publish_all, daemon=True).start()

    def notice(self):
        """Takes a picture of the pods now, to be published later."""
        with self.order:  # The last picture in the queue has to be the latest.
            self.waiting.put((time.monotonic() + self.delay, self.picture()))

    def picture(self):
        """Returns names by Service and endpoints by Service and port."""
        endpoints, names = {}, {}
        for service in self.cluster.of_kind("Service"):
            name, spec = service["metadata"]["name"], service["spec"]
            mine = [pod for pod in list(self.cluster.pods) if pod.host and self.is_selected(pod, spec)]
            ready = [pod for pod in mine if pod.is_ready and pod.is_active]
            suffix = f"{name}.{self.cluster.namespace}.svc"
            if spec.get("clusterIP") == "None":
                shown = mine if spec.get("publishNotReadyAddresses") else ready
                addresses = [(pod.host.address, pod.name) for pod in shown if pod.phase == "Running"]
                names[name] = [(address, f"{pod}.{suffix}") for address, pod in addresses]
                names[name] += [(address, suffix) for address, _ in addresses]
                continue
            address = self.addresses.setdefault(name, f"10.96.0.{10 + len(self.addresses)}")
            names[name] = [(address, suffix)]
            for port in spec["ports"]:
                target = port.get("targetPort", port["port"])
                found = sorted((pod.host.address, port_number(target, pod.spec)) for pod in ready)
                endpoints[name, port["port"]] = found
        return endpoints, names

    def is_selected(self, pod, spec):
        return spec["selector"].items() <= pod.labels.items() and not pod.gone.is_set()

    def publish_all(self):
        while True:
            due, picture = self.waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if picture != self.published:
                self.publish(*picture)
                self.published = picture

    def publish(self, endpoints, names):
        """Puts names and endpoints into force."""
        before = self.published or ({}, {})
        for service, lines in names.items():
            if lines != before[1].get(service):
                self.cluster.names.set(service, lines)
        if endpoints != before[0]:
            rules = table({(self.addresses[name], port): found for (name, port), found in endpoints.items()})
            call("nft", "-f", "-", input=rules)
            say(
                "endpoints:",
                {name: [address for address, _ in found] for (name, _), found in endpoints.items()},
            )
            for listener in self.listeners:
                listener(endpoints)


def table(endpoints):
    """Returns the nft table that sends each new connection to one of the endpoints at random."""
    nat, refused = [], []
    for (address, port), found in endpoints.items():
        condition = f"ip daddr {address} tcp dport {port}"
        if found:
            pods = ", ".join(f"{index} : {pod}" for index, (pod, _) in enumerate(found))
            nat.append(f"{condition} dnat to numgen random mod {len(found)} map {{ {pods} }} : {found[0][1]}")
        else:
            refused.append(f"{condition} reject with tcp reset")
    chains = [
        ("pods", "type nat hook prerouting priority -100;", nat),
        ("node", "type nat hook output priority -100;", nat),
        ("refused_pods", "type filter hook forward priority 0;", refused),
        ("refused_node", "type filter hook output priority 0;", refused),
    ]
    blocks = ["\n".join([f"chain {name} {{", start, *rules, "}"]) for name, start, rules in chains]
    return (
        "add table ip services\ndelete table ip services\ntable ip services {\n" + "\n".join(blocks) + "\n}\n"
    )
