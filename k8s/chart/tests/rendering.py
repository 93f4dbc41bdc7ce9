"""Renders the chart with helm, once for each set of values."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import yaml

TESTS = pathlib.Path(__file__).resolve().parent
CHART = TESTS.parent
FILES = {path.stem: path for path in [*CHART.glob("values/*.yaml"), *TESTS.glob("values/*.yaml")]}
# `openshift` is for use with another set.
SETS = sorted(FILES.keys() - {"openshift"})


def program(name):
    """Returns the path of a program: from the environment, from beside this Python, or its name."""
    beside = pathlib.Path(sys.executable).parent / name
    return os.environ.get(name.upper().replace("-", "_"), str(beside) if beside.is_file() else name)


def run(*command, **options):
    command = [str(part) for part in command]
    return subprocess.run(command, check=False, text=True, capture_output=True, **options)


def helm(*command, name, more=None):
    """Runs a command of helm for the chart, with a set of values and further values."""
    options = ["--namespace", "shortmint", "--values", FILES[name], "--values", "-"]
    return run(program("helm"), *command, CHART, *options, input=json.dumps(more or {}))


def template(name, more=None):
    """Returns the rendered text; fails with helm's message if the values are refused."""
    done = helm("template", "shortmint", name=name, more=more)
    assert done.returncode == 0, f"{name} {more}: {done.stderr}"
    return done.stdout


def render(name, more=None):
    return [each for each in yaml.safe_load_all(template(name, more)) if each]


@functools.cache
def rendered(name):
    """The objects of a set as it is. Not to be changed."""
    return render(name)


def title(each):
    return f"{each['kind']} {each['metadata']['name']}"


def is_built_in(each):
    group = each["apiVersion"].rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io") and not group.startswith("gateway.")


def workloads(objects):
    return [each for each in objects if "template" in pod_parent(each)]


def pod_parent(each):
    """The part of an object that has the template of its pods."""
    spec = each.get("spec") or {}
    return spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec


def pod_of(each):
    return pod_parent(each)["template"]["spec"]


def containers(each):
    pod = pod_of(each)
    return [*pod.get("initContainers", []), *pod["containers"]]


def only(objects, kind, name):
    [found] = [each for each in objects if title(each) == f"{kind} {name}"]
    return found


def variables(container):
    """The variables of a container by name: values, or None for those from elsewhere."""
    return {each["name"]: each.get("value") for each in container.get("env", [])}


def walk(value, path=()):
    """Yields the path and the value of every leaf."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, (*path, index))
    else:
        yield path, value
