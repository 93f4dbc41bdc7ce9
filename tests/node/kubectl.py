"""What the bed answers to kubectl and helm: the subcommands that documents use, and no others."""

import argparse
import json
import pathlib
import sys
import time

import yaml

from objects import NAMESPACE, name_of
from probes import port_number
from programs import Failed, Server, call, path_of

HERE = pathlib.Path(__file__).resolve().parent


def run(bed, request):
    """Returns the output of one call."""
    arguments = request["arguments"]
    if request["program"] == "helm":
        return helm(bed, request)
    arguments = without_namespace(arguments)
    word = " ".join(arguments[:2])
    for name, action in ACTIONS.items():
        if word == name or arguments[0] == name:
            return action(bed, arguments[len(name.split()) :], request)
    raise Failed(f"kubectl {word} is not known here")


def without_namespace(arguments):
    """Removes `--namespace shortmint`, which is the only one."""
    left, rest = list(arguments), []
    if "--" in left:
        cut = left.index("--")
        left, rest = left[:cut], left[cut:]
    for flag in ("-n", "--namespace"):
        if flag in left:
            place = left.index(flag)
            if left[place + 1] != NAMESPACE:
                raise Failed(f"namespace {left[place + 1]} is not known here")
            del left[place : place + 2]
    return left + rest


def parse(arguments, *options):
    """Parses flags that are known, in either of their forms."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("words", nargs="*")
    for names, settings in options:
        parser.add_argument(*names.split(), **settings)
    return parser.parse_intermixed_args(arguments)


def seconds(text):
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def helm(bed, request):
    """`helm upgrade`: renders with the real helm, and applies what it rendered. Other commands only print."""
    words = [word for word in request["arguments"] if word != "--install"]
    if words[0] == "template":
        return call(path_of("helm"), *words, cwd=request["folder"]) + "\n"
    if words[0] != "upgrade":
        raise Failed(f"helm {words[0]} is not known here")
    command, wait, position = [], False, 1
    while position < len(words):
        word = words[position]
        if word in ("--wait", "--create-namespace", "--atomic"):
            wait |= word != "--create-namespace"
        elif word == "--timeout":
            position += 1
        else:
            command.append(word)
        position += 1
    text = call(path_of("helm"), "template", *command, cwd=request["folder"])
    rendered = [found for found in yaml.safe_load_all(text) if found]
    bed.provide_images(rendered)
    former, bed.release = bed.release, bed.cluster.apply(rendered)
    for key in former.keys() - bed.release.keys():
        bed.cluster.remove(key)
    if wait:
        bed.wait_rolled_out(900)
    return "STATUS: deployed\n"


def apply(bed, arguments, request):
    flags = parse(
        arguments, ("-f --filename", {"required": True}), ("--server-side", {"action": "store_true"})
    )
    if flags.filename == "-":
        texts = [request["input"]]
    else:
        path = pathlib.Path(request["folder"]) / flags.filename
        texts = [file.read_text() for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
    found = [entry for text in texts for entry in yaml.safe_load_all(text) if entry]
    done = bed.cluster.apply(found)
    return "".join(f"{kind.lower()}/{name} {change}\n" for (kind, name), change in done.items())


def replace(bed, arguments, request):
    """`kubectl replace --force`: deletes what there is of these names, and applies."""
    flags = parse(arguments, ("--force", {"action": "store_true"}), ("-f --filename", {"required": True}))
    if not flags.force or flags.filename != "-":
        raise Failed("kubectl replace is known with --force and -f - only")
    found = [entry for entry in yaml.safe_load_all(request["input"]) if entry]
    for key in map(name_of, found):
        if key in bed.cluster.objects:
            bed.cluster.remove(key)
    bed.cluster.apply(found)
    return "".join(f"{kind.lower()}/{name} replaced\n" for kind, name in map(name_of, found))


def create_namespace(bed, arguments, request):
    return f"namespace/{arguments[0]} created\n"


def label(bed, arguments, request):
    """Of a namespace: the Pod Security Standard that its pods have to meet."""
    if arguments != ["namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"]:
        raise Failed(f"kubectl label {arguments} is not known here")
    bed.cluster.is_restricted = True
    return f"namespace/{NAMESPACE} labeled\n"


def port_forward(bed, arguments, request):
    """Leads a port of the node's loopback to a ready pod of a Service, until the run ends."""
    name, ports = arguments[0].removeprefix("service/"), arguments[1].split(":")
    service = bed.cluster.objects["Service", name]["spec"]
    entry = next(entry for entry in service["ports"] if entry["port"] == int(ports[1]))
    pod = next(p for p in bed.cluster.pods if p.is_ready and service["selector"].items() <= p.labels.items())
    target_port = port_number(entry["targetPort"], pod.spec)
    command = [sys.executable, HERE / "forward.py", ports[0], pod.host.address, str(target_port)]
    bed.keep(Server("port-forward", command, bed.scratch / "logs" / "port-forward.log"))
    return f"Forwarding from 127.0.0.1:{ports[0]}\n"


def create_job(bed, arguments, request):
    """Starts a CronJob now."""
    flags = parse(
        arguments, ("--from", {"dest": "source", "required": True}), ("--dry-run", {}), ("-o --output", {})
    )
    kind, name = flags.source.split("/")
    if kind not in ("cronjob", "cronjobs"):
        raise Failed(f"jobs from {kind} are not known here")
    spec = bed.cluster.objects["CronJob", name]["spec"]["jobTemplate"]["spec"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": flags.words[0]}, "spec": spec}
    if flags.dry_run == "client" and flags.output == "json":
        return json.dumps(job) + "\n"
    bed.cluster.apply([job])
    return f"job/{flags.words[0]} created\n"


def target(text, words):
    """`statefulset/issuer` or `statefulset issuer`."""
    kinds = {"statefulset": "StatefulSet", "sts": "StatefulSet", "deployment": "Deployment"}
    kinds |= {"deploy": "Deployment", "job": "Job", "pod": "Pod", "cronjob": "CronJob"}
    kind, _, name = text.partition("/")
    return kinds[kind], name or words[0]


def rollout_status(bed, arguments, request):
    flags = parse(arguments, ("--timeout", {"default": "15m"}))
    key = target(flags.words[0], flags.words[1:])
    bed.wait(f"{key[1]} to roll out", lambda: bed.cluster.rolled_out(*key), seconds(flags.timeout))
    return f"{key[0].lower()}/{key[1]} successfully rolled out\n"


def wait(bed, arguments, request):
    """Waits for a Job to complete, or for a pod to be ready or deleted."""
    condition, timeout = {"dest": "condition", "required": True}, {"default": "5m"}
    flags = parse(arguments, ("--for", condition), ("--timeout", timeout), ("-l --selector", {}))
    words = flags.words
    if flags.selector:
        label, _, value = flags.selector.partition("=")
        kind = target(f"{words[0]}/", ["-"])[0]
        labels = lambda key: bed.cluster.objects[key]["metadata"].get("labels", {})
        keys = [key for key in bed.cluster.objects if key[0] == kind and labels(key).get(label) == value]
        words = [f"{kind.lower()}/{name}" for _, name in keys]
    elif "/" not in words[0]:
        words = [f"{words[0]}/{words[1]}"]
    return "".join(wait_for(bed, target(word, []), flags.condition, seconds(flags.timeout)) for word in words)


def wait_for(bed, key, condition, timeout):
    """Waits until one object meets a condition."""
    if key[0] == "Job":
        bed.wait(f"Job {key[1]}", lambda: key in bed.cluster.results, timeout)
        if bed.cluster.results[key][0] != "complete":
            raise Failed(f"Job {key[1]} failed")
        return f"job/{key[1]} condition met\n"
    if condition.startswith("jsonpath={.metadata.annotations."):
        name, value = condition.removeprefix("jsonpath={.metadata.annotations.").split("}=")
        has_it = lambda pod: pod.name == key[1] and pod.is_active and pod.annotations.get(name) == value
        bed.wait(f"{key[1]}: {value}", lambda: any(map(has_it, bed.cluster.pods)), timeout)
        return f"pod/{key[1]} condition met\n"
    named = lambda: [pod for pod in bed.cluster.pods if pod.name == key[1] and not pod.gone.is_set()]
    is_met = (lambda: not named()) if condition == "delete" else lambda: any(p.is_ready for p in named())
    bed.wait(f"{key[1]}: {condition}", is_met, timeout)
    return f"pod/{key[1]} condition met\n"


def scale(bed, arguments, request):
    flags = parse(arguments, ("--replicas", {"type": int, "required": True}))
    lines = []
    for word in flags.words:
        key = target(word, [])
        bed.cluster.scale(key, flags.replicas)
        lines.append(f"{key[0].lower()}/{key[1]} scaled\n")
    if flags.replicas == 0:
        keys = [target(word, []) for word in flags.words]
        # A person would look before the next command.
        time.sleep(0.3)
        bed.wait("the pods to end", lambda: not any(bed.cluster.of(key) for key in keys), 120)
    return "".join(lines)


def execute(bed, arguments, request):
    """Runs a program in a container."""
    cut = arguments.index("--")
    flags = parse(arguments[:cut], ("-i --stdin", {"action": "store_true"}), ("-c --container", {}))
    name = flags.words[0].removeprefix("pod/")
    pod = next(
        pod for pod in bed.cluster.pods if pod.name == name and pod.container and not pod.gone.is_set()
    )
    done = pod.container.execute(arguments[cut + 1 :], 600, input=request["input"].encode())
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {done.stderr.decode()[-1000:]}")
    return done.stdout.decode()


def delete(bed, arguments, request):
    """Deletes a pod, or an object and its pods; a claim loses its data."""
    switch = {"action": "store_true"}
    flags = parse(arguments, ("--force", switch), ("--ignore-not-found", switch), ("--wait", {}))
    lines = []
    words = flags.words if "/" in flags.words[0] else [f"{flags.words[0]}/{name}" for name in flags.words[1:]]
    for word in words:
        kind, name = word.split("/")
        if kind in ("pvc", "persistentvolumeclaim"):
            bed.remove_claim(name)
        elif kind == "pod":
            next(pod for pod in bed.cluster.pods if pod.name == name and not pod.gone.is_set()).delete()
        elif target(word, []) in bed.cluster.objects or not flags.ignore_not_found:
            bed.cluster.remove(target(word, []))
        lines.append(f"{kind}/{name} deleted\n")
    return "".join(lines)


ACTIONS = {
    "apply": apply,
    "label": label,
    "replace": replace,
    "port-forward": port_forward,
    "create namespace": create_namespace,
    "create job": create_job,
    "rollout status": rollout_status,
    "wait": wait,
    "scale": scale,
    "exec": execute,
    "delete": delete,
}
