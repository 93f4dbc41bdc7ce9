#!/usr/bin/env python3
"""Writes `rules.yaml` and `dashboards/` of `../chart/files` from the definitions in `source/`. Needs Python 3.9
and no packages.

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

from source import dashboards, issuer, numbers, processes, slo, stores, visits
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
    texts = {"rules.yaml": HEADER + document({"groups": sections})}
    for name, dashboard in dashboards.all_dashboards().items():
        texts[f"dashboards/{name}.json"] = json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"
    return texts


def stale(texts):
    """Yields the generated files that differ, are missing or are no longer generated."""
    for name, text in texts.items():
        path = FILES / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield f"{name} differs: run generate.py"
    for path in sorted((FILES / "dashboards").iterdir()):
        if f"dashboards/{path.name}" not in texts:
            yield f"dashboards/{path.name} is not generated: remove it"


def tested(name, text):
    """Returns in which of two ways a test file tests an alert: that it fires, and that it does not."""
    ways = set()
    for block in re.split(r"^ *- eval_time:", text, flags=re.MULTILINE)[1:]:
        if re.search(rf"^ *alertname: {name}$", block, flags=re.MULTILINE):
            ways.add(
                "fires" if re.search(r"^ *- exp_labels:", block, flags=re.MULTILINE) else "stays quiet"
            )
    return ways


def gaps():
    """Yields alerts without a runbook, its line in the index or a test of either way, and other runbooks."""
    names = {alert.name for alert in alerts()}
    index = (FOLDER.parent / "runbooks" / "README.md").read_text(encoding="utf-8")
    tests = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / "tests").glob("*.yaml"))]
    for name in sorted(names):
        if not (FOLDER.parent / "runbooks" / f"{name}.md").is_file():
            yield f"{name} has no runbook"
        if f"({name}.md)" not in index:
            yield f"{name} is not in the runbooks' README.md"
        ways = {way for text in tests for way in tested(name, text)}
        yield from (f"no test shows that {name} {way}" for way in {"fires", "stays quiet"} - ways)
    for path in sorted((FOLDER.parent / "runbooks").glob("Shortmint*.md")):
        if path.stem not in names:
            yield f"the runbook {path.name} is of no alert"


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
