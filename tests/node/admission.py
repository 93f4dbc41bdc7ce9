"""Admission of pods: the Pod Security Standard `restricted`, for the fields that it demands."""


def violations(spec):
    """Returns what `restricted` refuses about the spec of a pod."""
    pod, found = spec.get("securityContext", {}), []
    for container in spec.get("initContainers", []) + spec["containers"]:
        own = {**pod, **container.get("securityContext", {})}
        wrong = {
            "runAsNonRoot": own.get("runAsNonRoot") is not True,
            "runAsUser": own.get("runAsUser") == 0,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "capabilities": own.get("capabilities", {}) != {"drop": ["ALL"]},
            "seccompProfile": own.get("seccompProfile", {}).get("type")
            not in ("RuntimeDefault", "Localhost"),
            "privileged": own.get("privileged", False),
        }
        found += [f"{container['name']}: {field}" for field, is_wrong in wrong.items() if is_wrong]
    found += [f"{field}" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    found += [f"volume {v['name']}: hostPath" for v in spec.get("volumes", []) if "hostPath" in v]
    return found
