"""Values that cannot work are refused, and a changed value changes what it has to."""

import re

import pytest
import yaml

from rendering import TESTS, helm, render

REFUSED = yaml.safe_load((TESTS / "refused.yaml").read_text())
HASHED = re.compile(r".+-[0-9a-f]{10}")


@pytest.mark.parametrize("entry", REFUSED, ids=[entry["why"] for entry in REFUSED])
def test_wrong_values_are_refused(entry):
    for kind, options in ("schema", []), ("template", ["--skip-schema-validation"]):
        if kind in entry:
            done = helm("template", "shortmint", *options, name="base", more=entry["values"])
            assert done.returncode != 0, f"accepted although {entry['why']}"
            assert entry[kind] in done.stderr


@pytest.mark.parametrize(
    "values, changed",
    [
        ({}, set()),
        ({"trustedProxies": ["10.0.0.0/8"]}, {"ConfigMap"}),
        ({"issuer": {"replicas": 5}}, {"ConfigMap"}),
        ({"imageRegistry": "registry.example.com"}, {"Job"}),
        ({"migrate": {"resources": {"limits": {"memory": "512Mi"}}}}, {"Job"}),
        ({"resolver": {"replicas": 1}}, set()),
    ],
)
def test_a_changed_setting_rolls_the_pods_and_a_changed_migration_runs_again(values, changed):
    before, after = hashed_names({}), hashed_names(values)
    assert {kind for kind in before if before[kind] != after[kind]} == changed


def test_alerts_link_to_the_runbooks_of_the_installation():
    url = "https://git.example.com/shortmint/k8s/runbooks/"
    rule = next(
        each
        for each in render("production", {"monitoring": {"runbooks": url}})
        if each["kind"] == "PrometheusRule"
    )
    alerts = [each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each]
    assert alerts and all(each["annotations"]["runbook_url"].startswith(url) for each in alerts)


def hashed_names(values):
    """The names of the ConfigMap and of the migration Job, which contain a hash of their contents."""
    names = {each["kind"]: each["metadata"]["name"] for each in render("base", values)}
    found = {kind: names[kind] for kind in ("ConfigMap", "Job")}
    assert all(HASHED.fullmatch(name) for name in found.values()), found
    return found
