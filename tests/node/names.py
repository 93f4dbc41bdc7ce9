"""DNS of the cluster: dnsmasq in a namespace of its own, which reads one file per Service."""

from network import Network
from programs import Server

DOMAIN = "cluster.local"


class Names:
    """Names of Services and of the stores, answered without delay and without a cache."""

    def __init__(self, network: Network, scratch):
        host = network.add("kube-dns", "kube-system", {"k8s-app": "kube-dns"})
        self.address = host.address
        self.folder = scratch / "names"
        self.folder.mkdir()
        options = [
            "--keep-in-foreground",
            "--no-resolv",
            "--no-hosts",
            "--bind-interfaces",
            "--user=root",
            "--pid-file=",
            f"--listen-address={self.address}",
            f"--local=/{DOMAIN}/",
            "--local-ttl=0",
            f"--hostsdir={self.folder}",
            # Otherwise unknown names are refused, which the C library reports as a temporary failure.
            "--address=/#/",
        ]
        command = ["ip", "netns", "exec", host.name, "dnsmasq", *options]
        self.server = Server("dnsmasq", command, scratch / "logs" / "dnsmasq.log")

    def set(self, key, lines):
        """Replaces the names of one file: pairs of an address and a name."""
        new = self.folder.parent / f"names.{key}"
        new.write_text("".join(f"{address} {name}.{DOMAIN}\n" for address, name in lines))
        new.rename(self.folder / key)
