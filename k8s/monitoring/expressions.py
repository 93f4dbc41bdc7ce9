#!/usr/bin/env python3
"""Prints every PromQL expression of the rules and dashboards as JSON, one a line.

    {"origin": "rules.yaml: alert ShortmintNoLeader", "kind": "alert", "name": …, "expr": …}

`kind` is `record`, `alert`, `panel`, `annotation` or `variable`; `name` is the recorded metric or the alert.
Variables of Grafana are replaced by values, so that Prometheus can be asked.
"""

import json
import sys

sys.dont_write_bytecode = True

import generate
from source.model import Alert

VALUES = {"$__rate_interval": "5m", "$job": ".+", "$namespace": ".*"}


def main():
    for origin, kind, name, expr in [*of_rules(), *of_dashboards()]:
        line = {"origin": origin, "kind": kind, "name": name, "expr": with_values(expr)}
        print(json.dumps(line, ensure_ascii=False))


def of_rules():
    for group in generate.groups():
        for rule in group.rules:
            kind = "alert" if isinstance(rule, Alert) else "record"
            yield f"rules.yaml: {kind} {rule.name}", kind, rule.name, rule.rule("")["expr"]


def of_dashboards():
    for name, dashboard in generate.dashboards.all_dashboards().items():
        file = f"dashboards/{name}.json"
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"{file}: {panel['title']}", "panel", "", target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield f"{file}: {annotation['name']}", "annotation", "", annotation["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{file}: {variable['name']}", "variable", "", selector(variable["definition"])


def selector(definition):
    """Returns the series of `label_values(SERIES, LABEL)`."""
    return definition.removeprefix("label_values(").rsplit(",", 1)[0]


def with_values(expr):
    for variable, value in VALUES.items():
        expr = expr.replace(variable, value)
    return expr


if __name__ == "__main__":
    main()
