"""Alerts on the processes: whether they run, and what they refuse."""

from .issuer import ISSUERS
from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import IS_EITHER, POD

DAY = 86_400
RESOLVERS = "shortmint:resolvers:count"
EXPIRY = "certificate_expiry_timestamp_seconds"
CERTIFICATES = f"(issuer_{EXPIRY} or resolver_{EXPIRY}) - time()"
EXPIRES = (
    f"The certificate for {{{{ $labels.certificate }}}} of {POD} "
    "ends in {{ $value | humanizeDuration }}."
)
# Workloads of kube-state-metrics are ours by their names in the chart, bundled stores included, in namespaces
# that have our daemons: they answered within the last day, or there are targets of both kinds, which may never
# have answered.
NAME = '"(.+-)?(issuer|resolver|redirect|etcd|postgres)"'
INSTALLED = "shortmint:installed:count"
OURS = 'last_over_time({__name__=~"(issuer|resolver)_build_info"}[1d])'
DAEMONS = 'up{job=~"(.+-)?(issuer|resolver)"}'
CLAIM = '"(.+-)?(backup|data-(.+-)?(etcd|postgres|resolver|redirect)-[0-9]+)"'
MISSING = "shortmint:pods_missing:count"


def not_ready(kind, wanted, ready):
    missing = f"kube_{kind}_{wanted}{{{kind}=~{NAME}}} - kube_{kind}_{ready}"
    return f'label_replace({missing}, "workload", "$1", "{kind}", "(.+)")'


def lost(serves, follows=()):
    return Alert(
        "ShortmintResolverRedundancyLost",
        CRITICAL,
        f'{RESOLVERS}{{serves="{serves}"}} == 0',
        f"No resolver is left that serves {serves}.",
        "{{ $value }} resolvers in {{ $labels.job }} serve {{ $labels.serves }}; there were some within the last day.",
        "1m",
        outage=f"resolvers-{serves}",
        follows=follows,
    )


RECORDS = [
    Record(
        INSTALLED,
        f"""
        count by (namespace) ({OURS})
        or count by (namespace) (up{{job=~"(.+-)?issuer"}})
        and on (namespace) count by (namespace) (up{{job=~"(.+-)?resolver"}})
        """,
    ),
    # By what resolvers serve, not by role: `all` may be split into the two others. Those of the last day
    # count as 0, so that the loss of the last one is a value and not a gap.
    Record(
        RESOLVERS,
        """
        sum by (job, namespace, serves) (resolver_ready or last_over_time(resolver_ready[1d]) * 0)
        """,
    ),
    # Pods that are wanted and not ready, by kube-state-metrics; issuers fewer than in the last day, where
    # there is none; and processes that do not answer, at whatever address, or are not ready. Without
    # kube-state-metrics a resolver that leaves no target behind looks like a scale-down, so that only the
    # last ones are missed.
    Record(
        MISSING,
        f"""
        sum by (namespace, workload) (
          (
            {not_ready("statefulset", "replicas", "status_replicas_ready")}
            or
            {not_ready("deployment", "spec_replicas", "status_replicas_ready")}
          )
          and on (namespace) {INSTALLED}
        ) > 0
        or on (namespace)
        (
          (
            max_over_time({ISSUERS}[1d]) - {ISSUERS} > 0
            unless on (namespace) kube_statefulset_replicas{{statefulset=~{NAME}}}
          )
          or
          count by (job, namespace) (
            (up == 0 and on (job, namespace) {OURS} or {DAEMONS} == 0 and on (namespace) {INSTALLED})
            or max by (job, namespace, instance) (resolver_ready) == 0
          )
        )
        """,
    ),
]

ALERTS = [
    Alert(
        "ShortmintPodsMissing",
        WARNING,
        f"{MISSING} > 0",
        "Part of a fleet does not run.",
        """{{ $value }} pods of {{ or $labels.workload $labels.job }} are wanted and not ready, or do not
        answer Prometheus, for 10 minutes.""",
        "10m",
    ),
    # Redirects go on without the resolvers that create links, and the other way round.
    lost("redirects"),
    lost("creates", follows=("resolvers-redirects",)),
    Alert(
        "ShortmintResolverRedundancyLost",
        WARNING,
        f"{RESOLVERS} == 1 and max_over_time({RESOLVERS}[1d]) > 1",
        "A single resolver is left that serves redirects or creates.",
        """{{ $value }} resolver in {{ $labels.job }} serves {{ $labels.serves }}; there were more within the
        last day.""",
        "15m",
    ),
    Alert(
        "ShortmintRestarting",
        WARNING,
        f"changes(process_start_time_seconds[30m]) > 2 and {IS_EITHER}",
        "A daemon starts again and again.",
        f"{POD} of {{{{ $labels.job }}}} has started {{{{ $value }}}} times in 30 minutes.",
    ),
    Alert(
        "ShortmintAutoscalerAtMaximum",
        WARNING,
        f"""
        kube_horizontalpodautoscaler_status_current_replicas{{horizontalpodautoscaler=~{NAME}}}
        >= kube_horizontalpodautoscaler_spec_max_replicas
        and on (namespace) {INSTALLED}
        """,
        "An autoscaler has reached its maximum.",
        """{{ $labels.horizontalpodautoscaler }} has had all of its {{ $value }} pods for 15 minutes; more
        load meets no more pods.""",
        "15m",
    ),
    Alert(
        "ShortmintDescriptorsNearLimit",
        WARNING,
        f"process_open_fds / process_max_fds > 0.85 and {IS_EITHER}",
        "A daemon has nearly used up its descriptors.",
        f"""{{{{ $value | humanizePercentage }}}} of the descriptors of {POD} are open. The budgets of
        connections leave some for files, unless the limit is very small.""",
        "5m",
    ),
    Alert(
        "ShortmintConnectionsRefused",
        WARNING,
        "sum by (job, namespace) (rate(resolver_connections_refused_total[5m])) > 1",
        "Resolvers refuse connections.",
        """{{ $labels.job }} refuses {{ $value | humanize }} connections/s, because all that a client or a
        process may have are busy with a request.""",
        "5m",
    ),
    Alert(
        "ShortmintUnavailableAnswers",
        WARNING,
        """
        sum by (job, namespace) (rate(resolver_unavailable_total[5m]))
        /
        sum by (job, namespace) (rate(resolver_request_duration_seconds_count[5m]))
        > 0.01
        """,
        "Requests are answered 503.",
        """{{ $value | humanizePercentage }} of the requests in {{ $labels.job }} were answered 503 in 5
        minutes.""",
        "10m",
        follows=("postgres", "leader", "etcd", "issuers"),
    ),
    Alert(
        "ShortmintVisitorsRefused",
        WARNING,
        """
        sum by (job, namespace) (rate(resolver_unknown_codes_refused_total[10m]))
        /
        sum by (job, namespace) (rate(resolver_request_duration_seconds_count{route="redirect"}[10m]))
        > 0.05
        """,
        "Visitors are answered 429.",
        """{{ $value | humanizePercentage }} of the redirects in {{ $labels.job }} were refused in 10
        minutes, because their client had requested too many unknown codes. Either codes are being guessed,
        or a proxy is missing from --trusted-proxies, and all its visitors count as one client.""",
        "15m",
    ),
    Alert(
        "ShortmintSeveralVersions",
        WARNING,
        """
        count by (job, namespace) (
          count by (job, namespace, version) (issuer_build_info or resolver_build_info)
        ) > 1
        """,
        "Several versions have been running for an hour.",
        """{{ $value }} versions run in {{ $labels.job }}. An update takes minutes, so it is stuck or
        forgotten.""",
        "1h",
    ),
    Alert(
        "ShortmintBackupMissed",
        WARNING,
        f"""
        time() - max by (namespace, cronjob) (kube_cronjob_status_last_successful_time{{cronjob=~"(.+-)?backup"}}) > 10800
        and on (namespace) {INSTALLED}
        """,
        "No backup of the bundled stores has been made for three hours.",
        """{{ $labels.cronjob }} succeeded last {{ $value | humanizeDuration }} ago. Links that were created
        since are lost with the volume of Postgres.""",
        "5m",
    ),
    Alert(
        "ShortmintVolumeFull",
        WARNING,
        f"""
        kubelet_volume_stats_available_bytes{{persistentvolumeclaim=~{CLAIM}}}
        / kubelet_volume_stats_capacity_bytes < 0.15
        and on (namespace) {INSTALLED}
        """,
        "A volume is nearly full.",
        """{{ $value | humanizePercentage }} of {{ $labels.persistentvolumeclaim }} is left.""",
        "15m",
    ),
    Alert(
        "ShortmintLogLinesDropped",
        WARNING,
        """
        sum by (job, namespace) (
          increase(issuer_log_lines_dropped_total[15m]) or increase(resolver_log_lines_dropped_total[15m])
        ) > 0
        """,
        "Log lines are lost.",
        """{{ $value | printf "%.0f" }} lines of {{ $labels.job }} were dropped in 15 minutes, because
        standard error did not take them.""",
    ),
    Alert(
        "ShortmintCertificateExpiring",
        WARNING,
        f"{CERTIFICATES} < {14 * DAY}",
        "A certificate ends within 14 days.",
        EXPIRES + " It should have been renewed by now.",
        "1h",
    ),
    Alert(
        "ShortmintCertificateExpiring",
        CRITICAL,
        f"{CERTIFICATES} < {3 * DAY}",
        "A certificate ends within 3 days.",
        EXPIRES + " New connections fail after that.",
        "5m",
    ),
]


def group():
    return Group("processes", RECORDS + ALERTS)
