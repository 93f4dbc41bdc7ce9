"""Scenario: the value set `small`, installed from nothing by the commands of the document, and its losses.

The etcd and the Postgres of the release are pods. What follows a loss is what the document says.
"""

import json
import re
import signal
import time
import urllib.error
import urllib.request

import images
import ingress
import objects
from journal import say
from report import Report
from shell import Shell, blocks, commands, steps

README, INSTALL, STORES = "k8s/README.md", "Install", "Bundled stores"
STEPS_MAX = 4
ETCD, POSTGRES = ("StatefulSet", "etcd"), ("StatefulSet", "postgres")
SETTLE_SECONDS = 5
# Several blocks of numbers.
MINTED = 3000
# What an Ingress controller would be told; the value set leaves it to the reader.
BACKEND = {"service": {"name": "resolver", "port": {"number": 80}}}
PATH = {"path": "/", "pathType": "Prefix", "backend": BACKEND}
ENTRY = {"spec": {"rules": [{"http": {"paths": [PATH]}}]}}


def run(bed, options):
    report = Report("small")
    bed.images = options.tags[0]
    images.load(bed.images)
    shell = Shell(bed)
    install(bed, report, shell)
    load = bed.begin_load(options.rate)
    time.sleep(options.hold)
    losses = Losses(bed, report, load)
    losses.measure("a member of etcd is killed", lambda: kill(bed, ETCD, 1), creates=0)
    losses.measure("a member of etcd moves", lambda: move(bed, ETCD, 2), creates=0)
    losses.measure("a member of etcd loses its volume", lambda: lose_member(bed, shell), creates=0)
    losses.measure("Postgres is killed", lambda: kill(bed, POSTGRES, 0))
    losses.measure("Postgres moves", lambda: move(bed, POSTGRES, 0))
    losses.measure("an upgrade", lambda: upgrade(bed, shell), creates=0)
    load.end()
    load.verify()
    losses.judge()
    report.load(load.results, failures_allowed=True)
    restore(bed, report, shell)
    lose_etcd(bed, report, shell)
    return report


def install(bed, report, shell):
    """Follows the document from its first command to the first link."""
    start, block = time.monotonic(), blocks(README, INSTALL)[0]
    numbered = steps(block)
    for step in numbered:
        say("step", step.splitlines()[0])
    answer = shell.run(block)
    took = time.monotonic() - start
    bed.api_key, bed.domain = bed.cluster.data("Secret", "shortmint")["initial-api-key"], "go.example.com"
    bed.open(ENTRY)
    first = json.loads(re.search(r"^{.*shortCode.*}", answer, re.MULTILINE)[0])
    count = len(commands(block))
    report.row("steps", f"{len(numbered)} with {count} commands; the first link after {took:.0f} s")
    report.require(len(numbered) <= STEPS_MAX, f"the installation has {len(numbered)} steps")
    leads_to = location(bed, first["shortCode"])
    report.require(leads_to == first["longUrl"], f"the first link leads to {leads_to}")
    report.row("pods", ", ".join(sorted(pod.name for pod in bed.cluster.pods if pod.is_ready)))
    values = (objects.CHART / "values" / "small.yaml").read_text()
    (shell.workplace() / "values.yaml").write_text(values)


def ask(bed, path, body=None):
    """Sends a request to the proxy, and returns the answer, whatever its status."""
    headers = {"Host": bed.domain, "X-Api-Key": bed.api_key, "Content-Type": "application/json"}
    data = body and json.dumps(body).encode()
    request = urllib.request.Request(f"http://{ingress.ADDRESS}{path}", data, headers)
    opener = urllib.request.build_opener(NoRedirect)
    try:
        return opener.open(request, timeout=10)
    except urllib.error.HTTPError as error:
        return error


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Returns redirects as they are."""

    def redirect_request(self, *_):
        return None


def create(bed, label):
    """Creates a link; returns its code, or None, and its URL."""
    url = f"https://example.com/small/{label}"
    answer = ask(bed, "/rest/v3/short-urls", {"longUrl": url})
    return (json.load(answer)["shortCode"] if answer.status == 200 else None), url


def location(bed, code):
    return ask(bed, f"/{code}").headers["location"]


class Losses:
    """What fails while something is lost, by the clients' own times."""

    def __init__(self, bed, report, load):
        self.bed, self.report, self.load, self.windows = bed, report, load, []

    def measure(self, what, action, creates=None):
        """Does it, waits until all is well, and remembers when; `creates` is how many may fail at most."""
        say(what)
        start = time.time()
        action()
        self.bed.wait_rolled_out(300)
        self.bed.wait_former_pods()
        self.bed.wait("a create", lambda: create(self.bed, "settled")[0] is not None, 60)
        time.sleep(SETTLE_SECONDS)
        self.windows.append((what, start, time.time(), creates))

    def judge(self):
        """Reports failures by window, and requires that there are none outside."""
        times = {name: sorted(self.load.results[name].pop("failed_at")) for name in ("creates", "checks")}
        for what, start, end, most in self.windows:
            within = {name: [at for at in found if start <= at < end] for name, found in times.items()}
            self.report.row(what, f"{end - start - SETTLE_SECONDS:.0f} s; " + describe(within, start))
            if most is not None:
                failed = {name: len(found) for name, found in within.items() if len(found) > most}
                self.report.require(not failed, f"{what}: failed requests {failed}")
        inside = lambda at: any(start <= at < end for _, start, end, _ in self.windows)
        outside = sum(not inside(at) for found in times.values() for at in found)
        self.report.require(not outside, f"{outside} requests failed outside of all losses")


def describe(within, start):
    """How many requests of each client failed, and in which seconds."""
    texts = []
    for name, times in within.items():
        span = f" from {times[0] - start:.1f} to {times[-1] - start:.1f} s" if times else ""
        texts.append(f"{len(times)} {name} failed{span}")
    return ", ".join(texts)


def pod_of(bed, owner, number):
    return next(p for p in bed.cluster.of(owner) if p.name == f"{owner[1]}-{number}" and not p.gone.is_set())


def kill(bed, owner, number):
    """The process ends without a word; the kubelet starts it again."""
    pod = pod_of(bed, owner, number)
    restarts = pod.restarts
    pod.container.signal(signal.SIGKILL)
    bed.wait(f"{pod.name} to be started again", lambda: pod.restarts > restarts, 60)


def move(bed, owner, number):
    """The pod is deleted, and comes back on its volume with another address."""
    pod = pod_of(bed, owner, number)
    pod.delete()
    bed.wait(f"{pod.name} to end", pod.gone.is_set, 150)


def lose_member(bed, shell):
    """A member of etcd loses its volume, and the document brings it back."""
    shell.run("kubectl -n shortmint delete pvc/data-etcd-1 --wait=false")
    move(bed, ETCD, 1)
    crashed = lambda: any(pod.name == "etcd-1" and pod.restarts for pod in bed.cluster.of(ETCD))
    bed.wait("etcd-1 to miss its data", crashed, 60)
    first, second = blocks(README, STORES)[0].split("until etcdctl member remove ID; do sleep 5; done\n")
    listed = shell.run(first)
    member = next(line.split(",")[0] for line in listed.splitlines() if ", etcd-1," in line)
    function = first[first.index("etcdctl() {") : first.index("etcdctl member list")]
    shell.run(f"{function}until etcdctl member remove {member}; do sleep 5; done\n{second}")


def upgrade(bed, shell):
    """The command of the document with images of another tag, which rolls all daemons."""
    command = next(line for line in commands(blocks(README, "Upgrade")[0]) if line.startswith("helm "))
    shell.run(f"{command} --set issuer.image.tag=0.1.1 --set resolver.image.tag=0.1.1")


def restore(bed, report, shell):
    """A backup, links after it, the loss of Postgres' volume, and the commands of the document."""
    before = dict(create(bed, f"before-{number}") for number in range(100))
    shell.run(
        "kubectl -n shortmint create job backup-drill --from=cronjob/backup\n"
        "kubectl -n shortmint wait --for=condition=complete job/backup-drill --timeout=5m"
    )
    made_at = time.monotonic()
    after = dict(create(bed, f"after-{number}") for number in range(100))
    time.sleep(SETTLE_SECONDS)
    lost_at = time.monotonic()
    shell.run("kubectl -n shortmint delete pvc/data-postgres-0 --wait=false")
    move(bed, POSTGRES, 0)
    bed.wait("an empty Postgres", lambda: bed.cluster.rolled_out(*POSTGRES), 120)
    report.row("an empty Postgres", f"{time.monotonic() - lost_at:.0f} s after the loss of its volume")
    shell.run(blocks(README, STORES)[1])
    bed.wait("a create", lambda: create(bed, "again")[0] is not None, 300)
    took, age = time.monotonic() - lost_at, lost_at - made_at
    report.row("restore", f"creates answer {took:.0f} s after the loss; the dump was {age:.0f} s old")
    found = {code: location(bed, code) for code in before}
    report.require(found == before, "links from before the dump do not lead to their URLs")
    gone = [code for code in after if location(bed, code) is None]
    report.row("lost links", f"{len(gone)} of the {len(after)} that were created after the dump")
    again = {create(bed, f"again-{number}")[0] for number in range(MINTED)}
    report.require(None not in again, "creates fail after the restore")
    report.require(not again & set(after), "codes of lost links were minted again")
    report.row("minted since", f"{len(again):,} codes, none of them that of a lost link")


def lose_etcd(bed, report, shell):
    """All members of etcd lose their volumes, and the commands of the document begin a new ledger."""
    before = dict(create(bed, f"old-ledger-{number}") for number in range(MINTED))
    lost_at = time.monotonic()
    shell.run(blocks(README, STORES)[2] + blocks(README, STORES)[3])
    bed.wait("a create", lambda: create(bed, "new-ledger")[0] is not None, 300)
    report.row("all of etcd lost", f"creates answer {time.monotonic() - lost_at:.0f} s after the loss of its volumes")
    after = {create(bed, f"new-ledger-{number}")[0] for number in range(MINTED)}
    report.require(None not in after, "creates fail with the new ledger")
    report.require(not after & set(before), "codes of the old ledger were minted again")
    some = list(before)[:100]
    found = {code: location(bed, code) for code in some}
    report.require(found == {code: before[code] for code in some}, "links of the old ledger lead elsewhere")
    report.row("minted since", f"{len(after):,} codes, none of them one of the old ledger")
