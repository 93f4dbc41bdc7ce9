"""Values that cannot work are refused, and a changed value changes what it has to."""

import re

import pytest
import yaml

from rendering import TESTS, containers, helm, only, render, rendered, variables

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


def test_calls_and_pages_go_to_pods_that_answer_them():
    objects = rendered("redirect-ingress")
    paths = only(objects, "Ingress", "shortmint")["spec"]["rules"][0]["http"]["paths"]
    services = {each["path"]: each["backend"]["service"]["name"] for each in paths}
    for path in "/rest", "/s/rest", "/s/manage", "/yourls-api.php", "/s/v4/bitlinks":
        assert services[path] == "resolver", path
    assert services["/"] == "redirect" and "/api/v2" not in services and "/v4" not in services
    for name in "redirect", "resolver":
        found = variables(containers(only(objects, "Deployment", name))[0])
        assert found["RESOLVER_COMPAT"] == "yourls,bitly", name
    more = {"compat": ["kutt", "bitly"], "publicUrl": "https://go.example.com/s"}
    rules = only(render("split", more), "HTTPRoute", "shortmint")["spec"]["rules"]
    matches = [each["path"]["value"] for rule in rules[:-1] for each in rule["matches"]]
    assert "/s/api/v2" in matches and all(len(rule["matches"]) <= 8 for rule in rules)


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
