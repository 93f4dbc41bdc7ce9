"""Scenario: a scale-down, a rolling update and a drain, while each of the servers is away.

A server that is away drops all packets, so that calls hang: that is worse than a refused connection.
"""

import http.client
import json
import re
import time

import client
import ingress
import load
from clickhouse import PORT, Clickhouse
from journal import say
from report import Report

KNOWN_LINKS, FOLLOWS_PER_SECOND = 300, 200
REPLICAS = 3
# Creates fail while Postgres is away, and until the resolvers have their connections back.
RECOVERY_SECONDS = 15
RESOLVER = ("Deployment", "resolver")


def run(bed, options):
    report = Report("outage")
    prepare(bed, options)
    known = Known(bed)
    creates, checks = begin(bed, options, known)
    windows = []
    for number, name in enumerate(options.servers):
        known.warm()
        start = time.time()
        outage(bed, report, options, name, number)
        windows.append((name, start, time.time()))
        time.sleep(5)
    creates.end()
    checks.end()
    creates.verify()
    results = {**creates.results, "checks": checks.results["checks"]}
    judge(report, results, windows)
    report.load(results, failures_allowed=True)
    report.require(not results["checks"]["failed"], f"redirects of known links failed: {results['checks']}")
    check_visits(bed, report, results["checks"]["succeeded"] + results["verify"]["succeeded"] + known.visits)
    return report


def prepare(bed, options):
    """Installs with three resolvers, and rows of visits in ClickHouse."""
    bed.clickhouse = Clickhouse(bed.network, bed.scratch)
    bed.keep(bed.clickhouse.server)
    bed.names.set("clickhouse", bed.clickhouse.names)
    bed.wait("ClickHouse", bed.clickhouse.is_up, 60)
    bed.clickhouse.query("CREATE DATABASE IF NOT EXISTS shortmint")
    bed.install(options.tags[0], **values(bed))


def values(bed, label="", replicas=REPLICAS):
    """The values of this scenario. Another label changes the pods of the resolvers, and so rolls them."""
    store = [{"name": "RESOLVER_VISITS_STORE", "value": bed.clickhouse.url()}]
    rule = {"to": [{"ipBlock": {"cidr": f"{bed.clickhouse.host.address}/32"}}], "ports": [{"port": PORT}]}
    return {
        "resolver": {"replicas": replicas, "extraEnv": store, "podAnnotations": {"example.com/run": label}},
        "migrate": {"extraEnv": store},
        "networkPolicy": {"extraEgress": [rule]},
    }


class Known:
    """Links that every resolver has in its cache, because each was asked for each of them."""

    def __init__(self, bed):
        self.bed, self.visits, self.links = bed, 0, {}
        self.path = bed.scratch / "known"
        for number in range(KNOWN_LINKS):
            url = f"https://example.com/known/{number}"
            body = json.dumps({"longUrl": url})
            status, _, answer = self.ask(ingress.ADDRESS, ingress.PORT, "POST", "/rest/v3/short-urls", body)
            assert status == 200, answer
            self.links[json.loads(answer)["shortCode"]] = url
        self.path.write_text("".join(f"{code} {url}\n" for code, url in self.links.items()))

    def ask(self, address, port, method, path, body=None):
        """Sends one request, as an operator."""
        connection = http.client.HTTPConnection(address, port, timeout=client.TIMEOUT_SECONDS)
        headers = {"Host": self.bed.domain, "X-Api-Key": self.bed.api_key, "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def warm(self):
        """Follows each link once on each resolver."""
        for pod in self.bed.cluster.of(RESOLVER):
            for code, url in self.links.items():
                status, headers, _ = self.ask(pod.host.address, 8080, "GET", f"/{code}")
                assert (status, headers["location"]) == (302, url), (pod.name, code, status)
                self.visits += 1


def begin(bed, options, known):
    """Starts the creates, and a client that follows the known links."""
    creates = load.Load(bed, options.rate, wrk=False)
    bed.stack.callback(creates.stop)
    creates.client("creates", "create", "--rate", str(options.rate), "--key", bed.api_key)
    checks = load.Load(bed, options.rate, wrk=False, links=known.path, host="followers")
    bed.stack.callback(checks.stop)
    checks.client("checks", "follow", "--rate", str(FOLLOWS_PER_SECOND))
    return creates, checks


def hosts(bed, name):
    """The network namespaces of a server that goes away."""
    if name == "issuers":
        return [pod.host for pod in bed.cluster.of(("StatefulSet", "issuer"))]
    members = {"postgres": [bed.postgres.host], "clickhouse": [bed.clickhouse.host], "etcd": bed.etcd.hosts}
    return members[name]


def outage(bed, report, options, name, number):
    """Takes a server away, does what operators do, and brings it back."""
    tag, label = options.tags[0], f"{name}-{number}"
    say(f"outage of {name}")
    for host in (gone := hosts(bed, name)):
        bed.network.cut(host)
    time.sleep(options.hold)
    start = time.monotonic()
    bed.cluster.scale(RESOLVER, REPLICAS - 1)
    bed.wait("the scale-down", lambda: len(bed.cluster.of(RESOLVER)) < REPLICAS, 120)
    bed.apply(tag, **values(bed, label, REPLICAS - 1))
    time.sleep(options.hold)
    is_complete = bed.cluster.rolled_out(*RESOLVER)
    node = bed.cluster.of(RESOLVER)[0].node
    kept = bed.cluster.nodes.drain(node, options.hold)
    away = time.monotonic() - start + options.hold
    for host in gone:
        bed.network.heal(host)
    bed.cluster.nodes.uncordon(node)
    bed.apply(tag, **values(bed, label))
    took = bed.wait_rolled_out(300)
    bed.wait_former_pods()
    update = "complete" if is_complete else "waited for it"
    drained = f"{len(kept)} pods kept by budgets" if kept else "complete"
    report.row(
        f"{name} away {away:.0f} s",
        f"scale-down done, update {update}, drain {drained}; as wanted {took['resolver']} s after its return",
    )


def judge(report, results, windows):
    """Creates may fail without Postgres only; redirects never do."""
    times = sorted(results["creates"].pop("failed_at"))
    results["checks"].pop("failed_at")
    for name, start, end in windows:
        failed = sum(start <= at <= end + RECOVERY_SECONDS for at in times)
        report.row(f"creates without {name}", f"{failed} failed")
        report.require(name == "postgres" or not failed, f"{failed} creates failed while {name} was away")
    outside = [at for at in times if not any(s <= at <= e + RECOVERY_SECONDS for _, s, e in windows)]
    report.require(not outside, f"{len(outside)} creates failed outside of all outages")


def check_visits(bed, report, followed):
    """Every redirect is a stored visit, or the log of a pod that ended counts it."""
    stored, since = -1, time.monotonic()
    while time.monotonic() - since < 30:
        found = visits(bed)
        if found != stored:
            stored, since = found, time.monotonic()
        if stored >= followed:
            break
        time.sleep(1)
    lost, left = followed - stored, lost_by_logs(bed)
    report.row(
        "visits", f"{followed:,} redirects, {stored:,} visits stored; left in spools by the logs: {left:,}"
    )
    # A pod may leave a visit whose storing it has not heard of, so the logs may count more.
    report.require(0 <= lost <= left, f"{lost} visits are not stored, and the logs count {left}")


def visits(bed):
    """The visits of all links, as the API says."""
    connection = http.client.HTTPConnection(ingress.ADDRESS, ingress.PORT, timeout=10)
    headers = {"Host": bed.domain, "X-Api-Key": bed.api_key}
    connection.request("GET", "/rest/v3/visits", headers=headers)
    return json.loads(connection.getresponse().read())["visits"]["nonOrphanVisits"]["total"]


def lost_by_logs(bed):
    """Sums what pods said at their end of visits that nothing can store any more."""
    pattern = re.compile(r'"message":"stopped: visits are left.*"visits":"?(\d+)')
    logs = (bed.scratch / "logs").glob("resolver-*.log")
    return sum(int(count) for log in logs for count in pattern.findall(log.read_text()))
