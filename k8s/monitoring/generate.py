#!/usr/bin/env python3
"""Writes `rules.yaml`, `inhibit-rules.yaml` and `dashboards/` of `../chart/files` from the definitions in
`source/`. Needs Python 3.9 and no packages.

    generate.py                      writes the files
    generate.py --check              exits 1 if a file differs, or if an alert lacks a runbook or a test
    generate.py --runbooks URL       has absolute links to the runbooks, also with --check
    generate.py --out FOLDER         writes them into another folder

Grafana has a module for dashboards in Python. It is not used: it would be this folder's only dependency,
and the few kinds of panels here are as short without it.
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # The folder is part of the repository, and stays free of caches.

from source import dashboards, inhibition, issuer, numbers, processes, slo, stores, visits
from source.model import RUNBOOKS, Alert
from source.yaml_text import document

FOLDER = Path(__file__).resolve().parent
# The only place of generated files: a chart can read no folder but its own.
FILES = FOLDER.parent / "chart" / "files"
HEADER = "# Written by k8s/monitoring/generate.py. Change k8s/monitoring/source/ instead.\n"


def groups():
    return [module.group() for module in (slo, issuer, numbers, processes, stores, visits)]


def alerts():
    return [rule for group in groups() for rule in group.rules if isinstance(rule, Alert)]


def files(runbooks):
    """Returns the text of each generated file by its path in the folder of all."""
    sections = [group.section(runbooks) for group in groups()]
    texts = {
        "rules.yaml": HEADER + document({"groups": sections}),
        "inhibit-rules.yaml": HEADER + document(inhibition.inhibit_rules(alerts())),
    }
    for name, dashboard in dashboards.all_dashboards().items():
        texts[f"dashboards/{name}.json"] = json_text(dashboard)
    return texts


def json_text(dashboard):
    """Returns a dashboard with one line for each setting and each panel."""
    panels = ",\n".join("    " + json.dumps(panel, ensure_ascii=False) for panel in dashboard["panels"])
    others = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n"
        for key, value in dashboard.items()
        if key != "panels"
    ]
    return "{\n" + "".join(others) + f'  "panels": [\n{panels}\n  ]\n' + "}\n"


def stale(texts):
    """Yields the generated files that differ, are missing or are no longer generated."""
    for name, text in texts.items():
        path = FILES / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield f"{name} differs: run generate.py"
    for path in sorted((FILES / "dashboards").iterdir()):
        if f"dashboards/{path.name}" not in texts:
            yield f"dashboards/{path.name} is not generated: remove it"


def gaps():
    """Yields alerts without a section in their runbook or without a test, and sections of no alert."""
    runbooks = FOLDER.parent / "runbooks"
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted((FOLDER / "tests").glob("*.yaml")))
    for group in groups():
        names = {rule.name for rule in group.rules if isinstance(rule, Alert)}
        text = (runbooks / group.page).read_text(encoding="utf-8")
        headings = set(re.findall(r"^## (Shortmint\w+)$", text, flags=re.MULTILINE))
        yield from (f"{name} is not in the runbook {group.page}" for name in sorted(names - headings))
        yield from (f"{name} of the runbook {group.page} is no alert" for name in sorted(headings - names))
        for name in sorted(names):
            if not re.search(rf'\balertname(="|: ){name}\b', tests):
                yield f"no test shows that {name} fires"
    yield from inhibition.unknown(alerts())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of write")
    parser.add_argument("--runbooks", default=RUNBOOKS, help="what the runbooks' URLs begin with")
    parser.add_argument("--out", type=Path, default=FILES, help="the folder to write to")
    arguments = parser.parse_args()
    if arguments.check:
        faults = [*stale(files(arguments.runbooks)), *gaps()]
        print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
        return 1 if faults else 0
    (arguments.out / "dashboards").mkdir(parents=True, exist_ok=True)
    for name, text in files(arguments.runbooks).items():
        (arguments.out / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
