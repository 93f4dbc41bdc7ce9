"""Probes, counted as a kubelet counts them."""

import http.client
import socket
import threading

from journal import say


class Probe:
    """The settings of one probe, and one attempt."""

    def __init__(self, settings, pod, container):
        self.container, self.command = container, settings.get("exec", {}).get("command")
        found = settings.get("httpGet") or settings.get("tcpSocket")
        if not found and not self.command:
            raise ValueError(f"probe {settings}: only httpGet, tcpSocket and exec are known here")
        self.path = found.get("path", "/") if "httpGet" in settings else None
        if found:
            self.address, self.port = pod.host.address, port_number(found["port"], pod.spec)
        self.delay = settings.get("initialDelaySeconds", 0)
        self.timeout = settings.get("timeoutSeconds", 1)
        self.period = settings.get("periodSeconds", 10)
        self.successes_needed = settings.get("successThreshold", 1)
        self.failures_needed = settings.get("failureThreshold", 3)

    def attempt(self):
        """Whether the pod answers in time: with a status from 200 to 399, a connection, or exit code 0."""
        if self.command:
            return self.container.execute(self.command, self.timeout).returncode == 0
        if self.path is None:
            return self.connects()
        connection = http.client.HTTPConnection(self.address, self.port, timeout=self.timeout)
        try:
            connection.request("GET", self.path)
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def connects(self):
        try:
            socket.create_connection((self.address, self.port), self.timeout).close()
            return True
        except OSError:
            return False


def port_number(port, spec):
    """Returns the number of a port that may be given by its name."""
    if isinstance(port, int):
        return port
    ports = [entry for container in spec["containers"] for entry in container.get("ports", [])]
    return next(entry["containerPort"] for entry in ports if entry["name"] == port)


class Prober:
    """The probes of one container: the startup probe first, then the two others beside each other."""

    def __init__(self, pod, run, on_ready, on_dead):
        self.name, self.on_ready, self.on_dead = pod.name, on_ready, on_dead
        container = pod.spec["containers"][0]
        kinds = ("startup", "readiness", "liveness")
        self.probes = {
            kind: Probe(container[f"{kind}Probe"], pod, run) for kind in kinds if f"{kind}Probe" in container
        }
        self.ended = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def stop(self):
        self.ended.set()

    def run(self):
        if not self.has_started():
            return
        if liveness := self.probes.get("liveness"):
            threading.Thread(target=self.watch, args=(liveness, self.live), daemon=True).start()
        if readiness := self.probes.get("readiness"):
            self.watch(readiness, self.on_ready)
        else:
            self.on_ready(True)

    def has_started(self):
        """Runs the startup probe until it has passed, or failed for good."""
        passed = []
        if startup := self.probes.get("startup"):
            self.watch(startup, lambda good: passed.append(good) or "end")
            if passed == [False]:
                say(self.name, "failed its startup probe")
                self.on_dead()
        return not self.probes.get("startup") or passed == [True]

    def live(self, good):
        if not good:
            say(self.name, "failed its liveness probe")
            self.on_dead()
            return "end"
        return None

    def watch(self, probe, report):
        """Reports each change that its threshold confirms, until `report` says "end"."""
        count, last, reported = 0, None, None
        if self.ended.wait(probe.delay):
            return
        while not self.ended.is_set():
            good = probe.attempt()
            count, last = (count + 1, last) if good == last else (1, good)
            needed = probe.successes_needed if good else probe.failures_needed
            if count >= needed and good != reported and not self.ended.is_set():
                reported = good
                if report(good) == "end":
                    return
            self.ended.wait(probe.period)
