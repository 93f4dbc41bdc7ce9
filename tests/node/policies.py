"""NetworkPolicies as nft rules: a pair of chains for each host that a policy selects."""

SIDES = (("Ingress", "from", "saddr", "oifname"), ("Egress", "to", "daddr", "iifname"))


def rules(found, hosts, namespaces):
    """Returns the table that replaces the present one. Without policies it allows everything."""
    chains, jumps = [], []
    for host in hosts:
        for direction, key, side, hook in SIDES:
            chosen = [policy["spec"] for policy in found if selects(policy, host, direction)]
            if not chosen:
                continue
            name = f"{direction.lower()}_{host.interface}"
            allowed = [
                line
                for spec in chosen
                for rule in spec.get(direction.lower(), [])
                for line in allow(rule, key, side, host.namespace, hosts, namespaces)
            ]
            chains.append(block(f"chain {name}", [*allowed, "drop"]))
            jumps.append(f'{hook} "{host.interface}" jump {name}')
    # Answers pass, and whatever no policy selects. The chains stand before the jumps to them.
    start = ["type filter hook forward priority 0;", "ct state established,related accept"]
    table = block("table inet policies", [*chains, block("chain forward", [*start, *jumps])])
    return f"add table inet policies\ndelete table inet policies\n{table}\n"


def block(head, lines):
    return "\n".join([f"{head} {{", *lines, "}"])


def selects(policy, host, direction):
    """Whether a policy is about this direction of this host's packets."""
    spec = policy["spec"]
    return (
        policy["metadata"]["namespace"] == host.namespace
        and matches(spec["podSelector"], host.labels)
        and direction in spec.get("policyTypes", ["Ingress"])
    )


def matches(selector, labels):
    """Whether labels meet a selector. An empty selector is met by all."""
    if unknown := set(selector) - {"matchLabels"}:
        raise ValueError(f"selectors with {sorted(unknown)} are not known here")
    return selector.get("matchLabels", {}).items() <= labels.items()


def allow(rule, key, side, namespace, hosts, namespaces):
    """Returns the lines of one rule. A missing list of peers or of ports stands for all of them."""
    peers = (
        [address_match(peer, side, namespace, hosts, namespaces) for peer in rule[key]]
        if rule.get(key)
        else [""]
    )
    ports = [port_match(port) for port in rule["ports"]] if rule.get("ports") else [""]
    return [f"{peer} {port} return" for peer in peers if peer is not None for port in ports]


def port_match(port):
    if "endPort" in port or not isinstance(port["port"], int):
        raise ValueError(f"port {port}: only single numbers are known here")
    return f"{port.get('protocol', 'TCP').lower()} dport {port['port']}"


def address_match(peer, side, namespace, hosts, namespaces):
    """Returns the condition on the peer's address, or None if no address meets it."""
    if block_of := peer.get("ipBlock"):
        if ":" in block_of["cidr"]:
            return None  # The bed has no IPv6.
        excepted = block_of.get("except", [])
        return f"ip {side} {block_of['cidr']}" + (
            f" ip {side} != {{ {', '.join(excepted)} }}" if excepted else ""
        )
    found = [
        host.address
        for host in hosts
        if in_namespace(peer, host, namespace, namespaces)
        and matches(peer.get("podSelector", {}), host.labels)
    ]
    return f"ip {side} {{ {', '.join(found)} }}" if found else None


def in_namespace(peer, host, namespace, namespaces):
    """Without a selector of namespaces, a peer is a pod of the policy's own."""
    if "namespaceSelector" not in peer:
        return host.namespace == namespace
    return host.namespace in namespaces and matches(peer["namespaceSelector"], namespaces[host.namespace])
