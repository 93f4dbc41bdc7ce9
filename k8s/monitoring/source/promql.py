"""Expressions that several rules and panels share.

Rules select by metric and by the metric's own labels, never by `job`: the names of jobs differ between
installations. Sums keep `job` and `namespace`, so that two installations on one Prometheus stay apart.
"""

# A process in texts: pods have a name, other targets an address.
POD = "{{ or $labels.pod $labels.instance }}"

# The keyspace in texts, for series that carry the metric's own label: see `by_keyspace`.
KEYSPACE = "{{ or $labels.exported_namespace $labels.namespace }}"

# Which daemon a target is, whatever its job is called. The window finds it for a day after its end.
IS_ISSUER = "on (job, instance) last_over_time(issuer_build_info[1d])"
IS_RESOLVER = "on (job, instance) last_over_time(resolver_build_info[1d])"
IS_EITHER = "on (job, instance) (issuer_build_info or resolver_build_info)"


def by_keyspace(aggregate, series):
    """Aggregates series that have a metric label `namespace`, the keyspace, into the label `keyspace`.

    The Prometheus operator gives each target a label `namespace`, and renames the metric's own one to
    `exported_namespace`. Without the operator the metric keeps it.
    """
    own = f'label_replace({series}, "keyspace", "$1", "namespace", "(.+)")'
    either = f'label_replace({own}, "keyspace", "$1", "exported_namespace", "(.+)")'
    return f"{aggregate} ({either})"


def quantile(q, histogram, by, window="5m"):
    """Returns a quantile of a histogram's samples in a window."""
    labels = ", ".join(["le", *by])
    return f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket[{window}])))"
