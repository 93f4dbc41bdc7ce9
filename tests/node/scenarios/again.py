"""Scenario: the same apply again, the same an hour later, a changed setting, and what pruning takes."""

import pathlib
import time

import ingress
import objects
from report import Report

SETTLE_SECONDS = 5
# Another way to name the proxy, which changes the ConfigMap and nothing that the load sees.
CHANGED = {"trustedProxies": [str(pathlib.PurePosixPath(ingress.ADDRESS).with_suffix(".0")) + "/24"]}


def run(bed, options):
    report = Report("again")
    tag = options.tags[0]
    bed.install(tag)
    load = bed.begin_load(options.rate)
    repeat(bed, report, tag)
    repeat_later(bed, report, tag)
    change(bed, report, tag)
    prune(bed, report, tag)
    load.end()
    load.verify()
    report.load(load.results)
    return report


def processes(bed):
    """The pods that run for good, with their restarts."""
    return {(pod.name, pod.serial, pod.restarts) for pod in bed.cluster.pods if pod.owner[0] != "Job"}


def changes(done):
    return {f"{kind}/{name}": change for (kind, name), change in done.items() if change != "unchanged"}


def repeat(bed, report, tag):
    """Within the hour the Job still exists, and nothing at all happens."""
    before, jobs = processes(bed), bed.cluster.of_kind("Job")
    done = changes(bed.apply(tag))
    time.sleep(SETTLE_SECONDS)
    report.row("the same apply again", f"{len(done)} objects changed")
    report.require(not done, f"the same apply changed {done}")
    report.require(processes(bed) == before, "the same apply replaced or restarted pods")
    report.require(bed.cluster.of_kind("Job") == jobs, "the same apply changed the Jobs")


def repeat_later(bed, report, tag):
    """An hour later the Job is made again: the migration finds nothing to do."""
    before, schema = processes(bed), bed.postgres.schema_version()
    bed.cluster.expire_jobs()
    done = changes(bed.apply(tag))
    key = next(objects.name_of(found) for found in bed.cluster.of_kind("Job"))
    bed.wait("the migration", lambda: key in bed.cluster.results, 120)
    result = bed.cluster.results[key][0]
    report.row("an hour later", f"{', '.join(done)}: {result}")
    report.require(list(done.values()) == ["created"], f"expected the Job alone to be created, found {done}")
    report.require(result == "complete", f"Job {key[1]} is {result}: see {bed.scratch}/logs")
    report.require(bed.postgres.schema_version() == schema, "the same migration changed the schema")
    report.require(processes(bed) == before, "the Job replaced or restarted pods")


def change(bed, report, tag):
    """A changed setting is another ConfigMap, so every pod is replaced, and gets it."""
    before = processes(bed)
    done = changes(bed.apply(tag, **CHANGED))
    took = bed.wait_rolled_out(240)
    bed.wait_former_pods()
    report.row("a changed setting", ", ".join(f"{name} {seconds} s" for name, seconds in took.items()))
    report.require(not processes(bed) & before, "pods run with the former setting")
    report.require(
        "ConfigMap" in {name.split("/")[0] for name in done}, f"expected a new ConfigMap, found {done}"
    )
    expected = f"RESOLVER_TRUSTED_PROXIES={CHANGED['trustedProxies'][0]}".encode()
    for pod in bed.cluster.of(("Deployment", "resolver")):
        environment = pathlib.Path(f"/proc/{pod.container.pid}/environ").read_bytes().split(b"\0")
        report.require(expected in environment, f"{pod.name} does not have {expected.decode()}")


def prune(bed, report, tag):
    """The former ConfigMap stays for the pods of the former revision, until it is pruned."""
    before = processes(bed)
    stale = [
        name for kind, name in bed.cluster.objects if kind == "ConfigMap" and name.startswith("shortmint-")
    ]
    report.require(len(stale) == 2, f"expected the former ConfigMap to stay, found {stale}")
    rendered = bed.render(tag, **CHANGED)
    done = changes(bed.cluster.apply(rendered, prune=True))
    time.sleep(SETTLE_SECONDS)
    report.row("pruning", ", ".join(done))
    kinds = [(name.split("/")[0], change) for name, change in done.items()]
    report.require(kinds == [("ConfigMap", "pruned")], f"expected one pruned ConfigMap, found {done}")
    report.require(processes(bed) == before, "pruning replaced or restarted pods")
