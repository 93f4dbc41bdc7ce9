"""Scenario: the release before, the new one and the release before again, under load."""

import time

import images
from journal import say
from report import Report

PAUSE_SECONDS = 3


def run(bed, options):
    """Two cycles of two rollouts, each by one apply."""
    report = Report("rollout")
    old, new = options.tags
    images.load(new)
    bed.install(old)
    load = bed.begin_load(options.rate)
    schema = bed.postgres.schema_version()
    for cycle in range(options.cycles):
        for label, tag in (("old to new", new), ("new to old", old)):
            if cycle:
                # In the first cycle the old Job is still there and does not run again. Later it is gone, and
                # the older migration meets the newer schema.
                bed.cluster.expire_jobs()
            say(f"cycle {cycle + 1}: {label}")
            done = bed.apply(tag)
            took = bed.wait_rolled_out(240)
            durations = ", ".join(f"{name} {seconds} s" for name, seconds in took.items())
            report.row(f"cycle {cycle + 1}, {label}", durations)
            job = next(key for key in done if key[0] == "Job")
            schema = check_migration(bed, report, job, schema, is_upgrade=tag == new)
            bed.wait_former_pods()
            time.sleep(PAUSE_SECONDS)
    load.end()
    load.verify()
    report.load(load.results)
    check_processes(bed, report)
    return report


def check_migration(bed, report, job, before, is_upgrade):
    """No migration takes anything back. That of the release before may refuse a newer schema."""
    tried = lambda: [pod for pod in bed.cluster.of(job) if pod.exit_code is not None]
    bed.wait("the migration", lambda: job in bed.cluster.results or tried(), 120)
    result, after = bed.cluster.results.get(job, ("refused",))[0], bed.postgres.schema_version()
    if result != "complete":
        result = f"{result}, exit code {tried()[-1].exit_code}: {tried()[-1].container.last_line()}"
    report.row("  migration", f"V{before} to V{after}: {result}")
    report.require(after >= before, f"the schema went from V{before} to V{after}")
    report.require(result == "complete" or not is_upgrade, f"{job[1]}: {result}")
    return after


def check_processes(bed, report):
    """A rollout without failures by luck is none: no container may have crashed or been killed."""
    restarted = {pod.name: pod.restarts for pod in bed.cluster.pods if pod.restarts}
    report.require(not restarted, f"containers restarted: {restarted}")
