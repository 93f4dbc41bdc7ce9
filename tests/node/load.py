"""The load of a run: creates at a constant rate, a client that checks redirects, and wrk for volume."""

import json
import pathlib
import signal
import sys
import time

import ingress
from journal import say
from network import OUTSIDE
from programs import Failed, Server, path_of

HERE = pathlib.Path(__file__).resolve().parent
# wrk and its paths: enough of them to be spread over both resolvers' caches.
WRK_LINKS, WRK_CONNECTIONS = 2000, 16
CREATES_BEFORE_REDIRECTS_SECONDS = 5
# Redirects per second whose location is compared. Those of wrk are only counted.
CHECK_RATE = 100


class Load:
    """Clients in a network namespace of their own, outside of the cluster."""

    def __init__(self, bed, rate, wrk, links=None, host="client"):
        self.bed, self.rate, self.has_wrk, self.host = bed, rate, wrk, host
        self.links = links or bed.scratch / "links"
        self.links.touch()
        self.servers, self.results = {}, {}
        bed.network.add(host, OUTSIDE)

    def client(self, name, command, *options):
        """Starts a client, less eager for the processor than the servers."""
        address = f"{ingress.ADDRESS}:{ingress.PORT}"
        base = [
            sys.executable,
            HERE / "client.py",
            command,
            "--address",
            address,
            "--host",
            self.bed.domain,
            "--links",
            self.links,
        ]
        self.start(name, [*base, *options])

    def start(self, name, command, stop_signal=signal.SIGTERM):
        output = (self.bed.scratch / f"{name}.out").open("w")
        log = self.bed.scratch / "logs" / f"{name}.log"
        command = ["ip", "netns", "exec", self.host, "nice", "-n", "5", *command]
        self.servers[name] = Server(name, command, log, stop_signal, stdout=output)

    def begin(self):
        """Starts the creates, and the redirects once there is something to follow."""
        self.client("creates", "create", "--rate", str(self.rate), "--key", self.bed.api_key)
        time.sleep(CREATES_BEFORE_REDIRECTS_SECONDS)
        paths = [f"/{line.split(' ')[0]}" for line in self.links.read_text().splitlines()[:WRK_LINKS]]
        if not paths:
            self.servers["creates"].check()
            raise Failed(f"no create succeeded: see {self.bed.scratch}/logs")
        self.client("checks", "follow", "--rate", str(CHECK_RATE))
        if self.has_wrk:
            (self.bed.scratch / "paths").write_text("\n".join(paths) + "\n")
            options = [
                "--threads",
                "1",
                "--connections",
                str(WRK_CONNECTIONS),
                "--duration",
                "1h",
                "--timeout",
                "10s",
                "--latency",
                "--script",
                HERE / "volume.lua",
                "--header",
                f"Host: {self.bed.domain}",
            ]
            target = f"http://{ingress.ADDRESS}:{ingress.PORT}/"
            self.start(
                "wrk", [path_of("wrk"), *options, target, "--", self.bed.scratch / "paths"], signal.SIGINT
            )
        say(
            "load:",
            self.rate,
            "creates and",
            CHECK_RATE,
            "checked redirects per second",
            "and wrk" * self.has_wrk,
        )

    def end(self):
        """Stops the clients and reads their counts."""
        for name, server in self.servers.items():
            server.check()
            server.stop(60)
            self.results[name] = self.result(name, server)
        self.servers = {}

    def result(self, name, server):
        text = (self.bed.scratch / f"{name}.out").read_text()
        found = [line.removeprefix("JSON ") for line in text.splitlines() if line.startswith(("{", "JSON "))]
        if not found:
            raise Failed(f"{name} printed no counts: see {server.log}")
        counts = json.loads(found[-1])
        if name == "wrk":
            counts["failed"] = sum(counts["failures"].values())
            counts["rate"] = round(counts["attempted"] / counts["seconds"], 1)
            counts["milliseconds"] = {key: counts.pop(key) for key in ("p50", "p99", "max")}
        return counts

    def verify(self):
        """Follows every acknowledged link once."""
        say("verifying every acknowledged link")
        self.client("verify", "verify")
        server = self.servers.pop("verify")
        try:
            server.process.wait(300)
        finally:
            server.stop()
        self.results["verify"] = self.result("verify", server)
        return self.results["verify"]

    def stop(self):
        for server in self.servers.values():
            server.stop(5)
