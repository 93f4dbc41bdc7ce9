"""Every render is valid: for helm, for Kubernetes, for the projects whose objects it has, and for checkov."""

import json

import jsonschema
import pytest
import yaml

from rendering import CHART, SETS, TESTS, helm, is_built_in, program, rendered, run, template, title

# `kubeVersion` of the chart, and the newest whose schemas kubernetes-validate has.
OLDEST, NEWEST = 27, 37
SCHEMAS = json.loads((TESTS / "schemas.json").read_text())


def test_the_oldest_version_is_that_of_the_chart():
    wanted = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    assert wanted == f">=1.{OLDEST}.0-0"


@pytest.mark.parametrize("name", SETS)
def test_helm_lints(name):
    done = helm("lint", "--strict", name=name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_objects_are_valid_in_each_kubernetes(request, tmp_path):
    minors = range(OLDEST, NEWEST + 1) if request.config.getoption("--all-versions") else (OLDEST, NEWEST)
    expected = 0
    for name in SETS:
        built_in = [each for each in rendered(name) if is_built_in(each)]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(built_in))
        expected += len(built_in) * len(minors)
    versions = [option for minor in minors for option in ("-k", f"1.{minor}")]
    done = run(program("kubernetes-validate"), "--strict", *versions, *sorted(tmp_path.iterdir()))
    lines = (done.stdout + done.stderr).splitlines()
    passed = [line for line in lines if " passed " in line]
    # It exits with 0 even after a warning or a skipped object.
    assert len(passed) == expected and done.returncode == 0, set(lines) - set(passed)


def test_objects_of_other_projects_are_valid():
    kinds = set()
    for name in SETS:
        for each in rendered(name):
            if not is_built_in(each):
                kinds.add(each["kind"])
                schema = {**SCHEMAS, "$ref": f"#/kinds/{each['kind']}"}
                errors = list(jsonschema.Draft7Validator(schema).iter_errors(each))
                assert not errors, f"{name}: {title(each)}: {errors}"
    assert kinds == SCHEMAS["kinds"].keys(), "each schema is used"


def test_checkov_finds_nothing_that_is_not_explained(tmp_path):
    for name in SETS:
        (tmp_path / f"{name}.yaml").write_text(template(name))
    options = ["--config-file", TESTS / "checkov.yaml", "--output", "json"]
    report = json.loads(run(program("checkov"), "--directory", tmp_path, *options).stdout)
    failed = report["results"]["failed_checks"]
    assert not [f"{each['check_id']} {each['file_path']} {each['resource']}" for each in failed]
    assert report["summary"]["passed"] > 1000 and not report["summary"]["parsing_errors"]
