"""Alerts on leadership and on etcd, as the issuers see it."""

from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import IS_ISSUER, POD, quantile

LEADERS = "shortmint:leaders:count"
ISSUERS = "shortmint:issuers:count"

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
    # Counters are those of one process: a former leader keeps its value, and rates add up.
    Record(
        "shortmint:numbers_issued:rate5m", "sum by (job, namespace) (rate(issuer_numbers_issued_total[5m]))"
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
        "ShortmintLeaderFlapping",
        WARNING,
        "max by (job, namespace) (increase(issuer_leader_changes_total[30m])) > 5",
        "The leading issuer changes again and again.",
        """{{ $value | printf "%.0f" }} changes of the leader in 30 minutes in {{ $labels.job }}. A rolling
        update causes at most three.""",
        "1m",
    ),
    Alert(
        "ShortmintIssuerDown",
        WARNING,
        f"up == 0 and {IS_ISSUER}",
        "An issuer does not answer Prometheus.",
        f"{POD} of {{{{ $labels.job }}}} has not answered for 5 minutes (up is {{{{ $value }}}}).",
        "5m",
    ),
    Alert(
        "ShortmintIssuerRedundancyLost",
        WARNING,
        f"{ISSUERS} < 2 and max_over_time({ISSUERS}[1d]) > 1",
        "Fewer than two issuers run, so none can take over.",
        "{{ $value }} issuers run in {{ $labels.job }}; there were more within the last day.",
        "15m",
    ),
    Alert(
        "ShortmintEtcdKeepAliveSlow",
        WARNING,
        quantile(0.99, "issuer_keep_alive_duration_seconds", ["job", "namespace", "pod", "instance"])
        + " > 0.5",
        "etcd answers the keep-alives of the leader's lease slowly.",
        f"""The 99th percentile at {POD} is {{{{ $value | humanizeDuration }}}}. With the default lease of
        5 s, a keep-alive that takes 1.25 s has failed.""",
        "10m",
    ),
    Alert(
        "ShortmintLeaseNearlyLost",
        WARNING,
        """
        count_over_time(
          (
            (issuer_lease_remaining_seconds > 0)
            < 0.4 * max_over_time(issuer_lease_remaining_seconds[1h])
          )[15m:30s]
        ) >= 2
        """,
        "The leader's lease is renewed late.",
        f"""{{{{ $value }}}} of the looks in 15 minutes found less than 40 % of the lease's seconds left at
        {POD}; a lease in order never falls below 75 %.""",
    ),
    Alert(
        "ShortmintEtcdCallsFailing",
        WARNING,
        "increase(issuer_election_errors_total[5m]) > 0",
        "Calls of an issuer to etcd fail.",
        f"""{{{{ $value | printf "%.0f" }}}} calls of {POD} outside of transactions have failed in 5
        minutes, and some did in each of the last 10 minutes.""",
        "10m",
    ),
    Alert(
        "ShortmintEtcdTransactionsInDoubt",
        WARNING,
        'increase(issuer_transactions_total{result="unknown"}[15m]) > 3',
        "etcd does not answer ledger transactions.",
        f"""{{{{ $value | printf "%.0f" }}}} transactions of {POD} had no answer in 15 minutes. The leader
        sends each again until it is decided, or until its lease ends.""",
    ),
    Alert(
        "ShortmintEtcdTransactionsSlow",
        WARNING,
        quantile(0.99, "issuer_transaction_duration_seconds", ["job", "namespace", "pod", "instance"])
        + " > 0.25",
        "Ledger transactions in etcd are slow.",
        f"""The 99th percentile at {POD} is {{{{ $value | humanizeDuration }}}}; a disk in order takes some
        milliseconds.""",
        "10m",
    ),
]


def group():
    return Group("shortmint-issuer", RECORDS + ALERTS)
