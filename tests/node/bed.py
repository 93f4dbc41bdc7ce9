"""The bed: network, stores, cluster and Ingress of one run, started in order and stopped in reverse."""

import contextlib
import pathlib
import secrets
import time

import images
import ingress
import objects
from certificates import Authority
from cluster import Cluster
from container import configure
from ingress import Ingress
from journal import say
from load import Load
from names import Names
from network import Network
from programs import Failed, call
from services import Services
from stores import Etcd, Postgres

VALUES = pathlib.Path(__file__).resolve().parent / "values.yaml"
ISSUERS = [f"issuer-{number}.issuer" for number in range(3)]


class Bed:
    """A context: on leaving it, everything that was started is stopped, in reverse order."""

    def __init__(self, scratch, endpoint_delay=1.0, has_stores=True):
        self.scratch, self.delay, self.has_stores = scratch, endpoint_delay, has_stores
        self.api_key, self.domain = secrets.token_hex(32), "short.example"
        self.stack, self.servers = contextlib.ExitStack(), []
        # The objects of the release that helm installed.
        self.release = {}
        # What a scenario changes in the rendered objects.
        self.alter = None

    def __enter__(self):
        with self.stack:
            self.start()
            # Nothing failed: what was started runs until the context ends.
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        say("stopping")
        self.stack.close()

    def start(self):
        say("logs and data are in", self.scratch)
        configure(self.scratch)
        self.stack.callback(call, "podman", "rm", "--force", "--all", "--time", "0")
        self.network = Network()
        self.names = Names(self.network, self.scratch)
        self.keep(self.names.server)
        self.cluster = Cluster(self.scratch, self.network, self.names)
        self.stack.callback(self.cluster.stop)
        self.services = Services(self.cluster, self.delay)
        self.ingress = Ingress(self.network, self.scratch)
        self.services.listeners.append(self.ingress.update)
        if self.has_stores:
            self.start_stores()

    def start_stores(self):
        """etcd and Postgres outside of the cluster, and the objects that lead to them."""
        authority = Authority(self.scratch / "certificates")
        self.etcd = Etcd(self.network, self.scratch, authority)
        self.keep(*self.etcd.servers)
        self.postgres = Postgres(self.network, self.scratch, authority)
        self.keep(self.postgres.server)
        self.postgres.create_database()
        self.names.set("stores", [*self.etcd.names, *self.postgres.names])
        self.cluster.apply(self.brought_along(authority))
        say("stores are up")

    def keep(self, *servers):
        """Has servers watched, and stopped at the end."""
        for server in servers:
            self.servers.append(server)
            self.stack.callback(server.stop)

    def begin_load(self, rate, wrk=True):
        """Starts the clients."""
        load = Load(self, rate, wrk)
        self.stack.callback(load.stop)
        load.begin()
        return load

    def brought_along(self, authority):
        """The objects that an installation needs and the manifests do not have."""
        secrets_by_name = {
            "issuer-tls": authority.issue("issuer", *ISSUERS),
            "issuer-etcd-tls": authority.issue("issuer-etcd", "issuer"),
            "resolver-tls": authority.issue("resolver", "resolver"),
            "shortmint": {
                **self.postgres.secret(),
                "code.key": secrets.token_hex(32),
                "initial-api-key": self.api_key,
            },
        }
        certificate = authority.certificate("authority").read_text()
        authorities = {f"{name}.crt": certificate for name in ("shortmint", "etcd", "postgres")}
        found = [("Secret", name, data) for name, data in secrets_by_name.items()]
        found.append(("ConfigMap", "authorities", authorities))
        return [{"kind": kind, "metadata": {"name": name}, "data": data} for kind, name, data in found]

    def render(self, tag, **values):
        """Renders the chart with the images of a tag and further values. The bed's proxy is trusted."""
        more = {"trustedProxies": [f"{ingress.ADDRESS}/32"], **values}
        for name in images.NAMES:
            more[name] = {**values.get(name, {}), "image": {"tag": tag}}
        rendered = objects.render(VALUES, more)
        return self.alter(rendered) if self.alter else rendered

    def apply(self, tag, **values):
        """One apply of the rendered objects."""
        return self.cluster.apply(self.render(tag, **values))

    def install(self, tag, **values):
        """The first apply, and the proxy in front once all pods are ready."""
        images.load(tag)
        self.apply(tag, **values)
        self.wait_rolled_out(120)
        self.open(self.cluster.of_kind("Ingress")[0])

    def open(self, found):
        """Starts the proxy for an Ingress."""
        self.ingress.start(found, self.cluster.of_kind("Service"))
        self.keep(self.ingress.server)
        self.ingress.update(self.services.published[0])
        self.wait("Envoy to listen", self.reaches_proxy, 20)

    def reaches_proxy(self):
        address = f"http://{ingress.ADDRESS}:{ingress.PORT}/"
        command = ["curl", "--silent", "--output", "/dev/null", "--max-time", "2", address]
        try:
            call(*command)
            return True
        except Failed:
            return False

    def workloads(self):
        kinds = ("StatefulSet", "Deployment")
        return [objects.name_of(found) for kind in kinds for found in self.cluster.of_kind(kind)]

    def provide_images(self, rendered):
        """Puts images of this run where rendered objects name those of a registry."""
        for image in images.images_of(rendered):
            for name in images.NAMES:
                if f"shortmint-{name}" in image:
                    call("podman", "tag", f"localhost/shortmint-{name}:{self.images}", image)
        images.load_stores(rendered)

    def remove_claim(self, name):
        """Deletes a volume with its data, once the pod that has it is gone."""
        self.cluster.doomed.add(name)

    def wait_rolled_out(self, seconds):
        """Waits for all workloads; returns how long each took."""
        start, took = time.monotonic(), {}

        def all_rolled_out():
            for kind, name in self.workloads():
                if name not in took and self.cluster.rolled_out(kind, name):
                    took[name] = round(time.monotonic() - start, 1)
                    say(name, "is rolled out after", took[name], "s")
            return len(took) == len(self.workloads())

        self.wait("the rollout", all_rolled_out, seconds)
        return took

    def wait_former_pods(self):
        """Waits until all deleted pods have ended, which a rollout does not wait for."""
        is_over = lambda: not any(pod.deleted_at and not pod.is_lost for pod in self.cluster.pods)
        self.wait("the former pods to end", is_over, 90)

    def wait(self, condition, is_met, seconds):
        """Waits until something is true; raises with the state of all pods if it does not become true."""
        end = time.monotonic() + seconds
        while not is_met():
            for server in self.servers:
                server.check()
            if time.monotonic() > end:
                pods = {pod.name: "ready" if pod.is_ready else pod.phase for pod in self.cluster.pods}
                pods |= {f"pending {name}": reason for (_, name), reason in self.cluster.reasons.items()}
                raise Failed(f"waited {seconds} s for {condition}; pods: {pods}; see {self.scratch}/logs")
            time.sleep(0.1)
