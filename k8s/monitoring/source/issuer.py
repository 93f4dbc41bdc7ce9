"""Alerts on leadership and on etcd, as the issuers and etcd itself see it."""

from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import quantile

LEADERS = "shortmint:leaders:count"
ISSUERS = "shortmint:issuers:count"
TRANSACTIONS = "sum by (job, namespace) (increase(issuer_transactions_total{{result=\"{}\"}}[{}]))"

RECORDS = [
    # An issuer that has gone counts as 0 for a day, so that "none leads" is a value and not a gap.
    Record(
        LEADERS,
        """
        sum by (job, namespace) (issuer_leader or last_over_time(issuer_leader[1d]) * 0)
        """,
    ),
    Record(
        ISSUERS,
        """
        count by (job, namespace) (issuer_build_info)
        or count by (job, namespace) (last_over_time(issuer_build_info[1d])) * 0
        """,
    ),
]

ALERTS = [
    Alert(
        "ShortmintNoLeader",
        CRITICAL,
        f"{LEADERS} == 0",
        "No issuer leads, so no blocks are allocated.",
        """{{ $value }} issuers lead in {{ $labels.job }}. Resolvers create links only until their numbers
        in hand are used up, which is about ten minutes at a steady rate.""",
        "1m",
        outage="leader",
    ),
    Alert(
        "ShortmintTwoLeaders",
        CRITICAL,
        f"{LEADERS} > 1",
        "Several issuers lead at once, so there are several ledgers.",
        """{{ $value }} issuers lead in {{ $labels.job }}. One etcd cluster and cluster name have one
        leader, so these use different ones.""",
        "2m",
    ),
    Alert(
        "ShortmintLedgerNotWritten",
        CRITICAL,
        f"{TRANSACTIONS.format('unknown', '2m')} > 0\nunless\n{TRANSACTIONS.format('ok', '2m')} > 0",
        "etcd takes no transaction of the ledger, so no blocks are allocated.",
        """{{ $value | printf "%.0f" }} transactions in {{ $labels.job }} failed in 2 minutes, and none was
        stored. An etcd that is out of space (alarm NOSPACE) keeps its leader and refuses all writes.""",
        # Before the resolvers miss the issuers' answers, which is a consequence.
        "30s",
        outage="etcd",
        follows=("leader",),
    ),
    Alert(
        "ShortmintLeaderFlapping",
        WARNING,
        "max by (job, namespace) (increase(issuer_leader_changes_total[30m])) > 5",
        "The leading issuer changes again and again.",
        """{{ $value | printf "%.0f" }} changes of the leader in 30 minutes in {{ $labels.job }}. A rolling
        update causes at most three.""",
        "1m",
    ),
    Alert(
        "ShortmintEtcdFailing",
        WARNING,
        f"""
        sum by (job, namespace) (increase(issuer_election_errors_total[5m])) > 0
        or
        {TRANSACTIONS.format("unknown", "5m")} > 0
        """,
        "Calls of the issuers to etcd fail.",
        """{{ $value | printf "%.0f" }} calls in {{ $labels.job }} have failed in 5 minutes, and some did in
        each of the last 10 minutes.""",
        "10m",
        follows=("leader", "etcd"),
    ),
    Alert(
        "ShortmintEtcdSlow",
        WARNING,
        quantile(0.99, "issuer_transaction_duration_seconds", ["job", "namespace"])
        + " > 0.25\nor\n"
        + quantile(0.99, "issuer_keep_alive_duration_seconds", ["job", "namespace"])
        + " > 0.5",
        "etcd answers the issuers slowly.",
        """The 99th percentile of the ledger's transactions or of the lease's keep-alives in {{ $labels.job
        }} is {{ $value | humanizeDuration }}; a disk in order takes some milliseconds. With the default
        lease of 5 s, a keep-alive that takes 1.25 s has failed.""",
        "10m",
        follows=("leader", "etcd"),
    ),
    # etcd's own metrics, where Prometheus scrapes it.
    Alert(
        "ShortmintEtcdSpaceLow",
        WARNING,
        "max by (job, namespace) (etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes) > 0.8",
        "An etcd is nearly out of space.",
        """The database of etcd {{ $labels.job }} has {{ $value | humanizePercentage }} of its quota. When it
        is full, etcd refuses all writes until an operator has made room and disarmed the alarm.""",
        "5m",
    ),
]


def group():
    return Group("issuers", RECORDS + ALERTS)
