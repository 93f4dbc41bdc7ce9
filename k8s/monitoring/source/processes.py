"""Alerts on the processes: whether they run, and what they refuse."""

from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import IS_EITHER, IS_RESOLVER, POD

DAY = 86_400
RESOLVERS = "shortmint:resolvers:count"
EXPIRY = "certificate_expiry_timestamp_seconds"
CERTIFICATES = f"(issuer_{EXPIRY} or resolver_{EXPIRY}) - time()"
EXPIRES = (
    f"The certificate for {{{{ $labels.certificate }}}} of {POD} "
    "ends in {{ $value | humanizeDuration }}."
)

RECORDS = [
    # Resolvers of the last day count as 0, so that the loss of the last one is a value and not a gap.
    Record(
        RESOLVERS,
        """
        count by (job, namespace) (resolver_build_info)
        or count by (job, namespace) (last_over_time(resolver_build_info[1d])) * 0
        """,
    ),
]

ALERTS = [
    Alert(
        "ShortmintResolverDown",
        WARNING,
        f"up == 0 and {IS_RESOLVER}",
        "A resolver does not answer Prometheus.",
        f"{POD} of {{{{ $labels.job }}}} has not answered for 5 minutes (up is {{{{ $value }}}}).",
        "5m",
    ),
    Alert(
        "ShortmintResolverRedundancyLost",
        CRITICAL,
        f"{RESOLVERS} == 0",
        "No resolver runs, so no link redirects.",
        "{{ $value }} resolvers run in {{ $labels.job }}; there were more within the last day.",
        "1m",
    ),
    Alert(
        "ShortmintResolverRedundancyLost",
        WARNING,
        f"{RESOLVERS} == 1 and max_over_time({RESOLVERS}[1d]) > 1",
        "A single resolver is left.",
        "{{ $value }} resolver runs in {{ $labels.job }}; there were more within the last day.",
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
        "rate(resolver_connections_refused_total[5m]) > 1",
        "A resolver refuses connections.",
        f"""{POD} refuses {{{{ $value | humanize }}}} connections/s, because all that a client or the
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
    return Group("shortmint-processes", RECORDS + ALERTS)
