"""Expressions that several rules and panels share.

Rules select by metric and by the metric's own labels, never by `job`: the names of jobs differ between
installations. Sums keep `job` and `namespace`, so that two installations on one Prometheus stay apart.
"""

# A process in texts: pods have a name, other targets an address.
POD = "{{ or $labels.pod $labels.instance }}"

# Which daemon a target is, whatever its job is called.
IS_EITHER = "on (job, instance) (issuer_build_info or resolver_build_info)"

KEYSPACE_LABELS = "job, namespace, keyspace"

# For how long a server has not answered, by the resolvers.
SILENCE = "resolver_last_success_age_seconds"

# Resolvers by what they serve; those of role `all` serve both.
REDIRECTING, CREATING = (f'shortmint:resolvers:count{{serves="{what}"}}' for what in ("redirects", "creates"))


def by_keyspace(aggregate, series):
    """Aggregates series that have a metric label `namespace`, the keyspace, into the label `keyspace`.

    The Prometheus operator gives each target a label `namespace`, and renames the metric's own one to
    `exported_namespace`. Without the operator the metric keeps it, and the target has none.
    """
    both = f'label_join({series}, "keyspace", "/", "namespace", "exported_namespace")'
    of_target = f'label_replace({both}, "namespace", "", "keyspace", "[^/]*/")'
    own = f'label_replace({of_target}, "keyspace", "$1", "keyspace", "(?:.*/)?([^/]+)/?")'
    return f"{aggregate} ({own})"


def silent(server, seconds):
    """Returns how many resolvers have had no answer from a server for so long."""
    return f'count by (job, namespace) ({SILENCE}{{server="{server}"}} > {seconds})'


def quantile(q, histogram, by, window="5m"):
    """Returns a quantile of a histogram's samples in a window."""
    labels = ", ".join(["le", *by])
    return f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket[{window}])))"
