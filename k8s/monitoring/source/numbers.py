"""Alerts on numbers: what is left, what is held, and whether the account balances."""

from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import KEYSPACE, POD, by_keyspace

# Gauges of the ledger are on the leader's page alone, and on none for some seconds of a fail-over. A look
# back of three minutes bridges them, and "max" or "min" leaves one value if both leaders are within it.
LOOK_BACK = "3m"
BY = "by (job, namespace, keyspace)"


def gauge(record, aggregate, metric, by=BY):
    return Record(record, by_keyspace(f"{aggregate} {by}", f"last_over_time({metric}[{LOOK_BACK}])"))


ALLOCATED = "shortmint:keyspace_allocated:max"
NUMBERS = "shortmint:keyspace_numbers:max"
UNACCOUNTED = "shortmint:keyspace_unaccounted:max"
RATIO = "shortmint:keyspace_remaining:ratio"
SECONDS = "shortmint:keyspace_exhaustion_seconds:min"
LOW = "shortmint:keyspace_low:max"

RECORDS = [
    gauge(ALLOCATED, "max", "issuer_namespace_allocated"),
    gauge(NUMBERS, "max", "issuer_numbers", "by (job, namespace, keyspace, state)"),
    gauge(UNACCOUNTED, "max", "issuer_numbers_unaccounted"),
    gauge(RATIO, "min", "issuer_namespace_remaining_ratio"),
    gauge(SECONDS, "min", "issuer_namespace_exhaustion_seconds"),
    gauge(LOW, "max", "issuer_namespace_low"),
]

ALERTS = [
    Alert(
        "ShortmintNumbersLow",
        WARNING,
        f"{RATIO} and on (job, namespace, keyspace) {LOW} == 1",
        "A keyspace runs low: plan another one.",
        """{{ $value | humanizePercentage }} of keyspace {{ $labels.keyspace }} is left. The issuer calls a
        keyspace low below 10 %, and when it lasts less than 30 days at the rate of the last six hours.""",
        "1h",
    ),
    Alert(
        "ShortmintNumbersExhaustion",
        CRITICAL,
        f"{SECONDS} < 3 * 86400",
        "A keyspace is used up within days.",
        """Keyspace {{ $labels.keyspace }} lasts {{ $value | humanizeDuration }} at the rate of the last
        six hours. After that its creates are answered 507.""",
        "1h",
    ),
    Alert(
        "ShortmintNumbersUnaccounted",
        CRITICAL,
        f"{UNACCOUNTED} > 0",
        "The account of a keyspace's numbers does not balance (invariant I10).",
        """{{ $value | printf "%.0f" }} numbers of keyspace {{ $labels.keyspace }} are missing from the
        account, or too many in it. The value is always 0 in a ledger that only issuers write.""",
    ),
    Alert(
        "ShortmintNumbersLeaked",
        WARNING,
        f"""
        min_over_time({NUMBERS}{{state="leaked"}}[45m]) > 0
        and on (job, namespace, keyspace)
        delta({ALLOCATED}[30m]) > 0
        """,
        "Leaked numbers are not reclaimed, although new ones are allocated.",
        """At least {{ $value | printf "%.0f" }} numbers of keyspace {{ $labels.keyspace }} have been
        leaked for 45 minutes. A block that has rested for --reclaim-after (10 minutes) is allocated before
        new numbers.""",
        "15m",
    ),
    Alert(
        "ShortmintBlocksOverlapping",
        CRITICAL,
        "increase(resolver_blocks_overlapping_total[15m]) > 0",
        "The issuer allocates numbers that the database's register has already.",
        f"""{{{{ $value | printf "%.0f" }}}} blocks were refused by {POD} in 15 minutes. Either etcd was
        restored from a backup, or another ledger serves this database. No code is assigned twice.""",
    ),
    Alert(
        "ShortmintSupplyLow",
        WARNING,
        "resolver_supply_seconds < 120",
        "A resolver runs out of numbers.",
        f"""The numbers of keyspace {KEYSPACE} that {POD} has in hand last {{{{ $value | humanizeDuration
        }}}}. A block lasts ten minutes, and the next one comes long before its end.""",
        "3m",
    ),
    Alert(
        "ShortmintSupplyEmpty",
        CRITICAL,
        "resolver_numbers_in_hand == 0",
        "A resolver has no numbers, so its creates fail.",
        f"""{POD} has {{{{ $value }}}} numbers of keyspace {KEYSPACE} in hand. Its creates wait for 10 s
        and are answered 503, or 507 if the keyspace is used up.""",
        "2m",
    ),
    Alert(
        "ShortmintRefillsFailing",
        WARNING,
        "increase(resolver_refills_failed_total[5m]) > 0",
        "The issuer refuses a resolver's calls.",
        f"""{{{{ $value | printf "%.0f" }}}} calls of {POD} were refused in 5 minutes, and some were in
        each of the last 10 minutes.""",
        "10m",
    ),
    Alert(
        "ShortmintConflictsRising",
        WARNING,
        """
        sum by (job, namespace) (rate(resolver_conflicts_total[15m]))
        /
        sum by (job, namespace) (rate(resolver_creates_total[15m]))
        > 0.01
        and
        sum by (job, namespace) (increase(resolver_conflicts_total[15m])) > 20
        """,
        "Creates find that links are stored under their numbers already.",
        """{{ $value | humanizePercentage }} conflicts for each create in {{ $labels.job }} in 15 minutes.
        Each costs an insert; no link is overwritten.""",
        "5m",
    ),
    Alert(
        "ShortmintInsertsInDoubt",
        WARNING,
        "sum by (job, namespace) (increase(resolver_inserts_unknown_total[5m])) > 0",
        "Postgres does not answer COMMITs.",
        """{{ $value | printf "%.0f" }} inserts in {{ $labels.job }} were in doubt in 5 minutes, and some
        were in each of the last 15 minutes. Each is looked up before its create is answered.""",
        "15m",
    ),
]


def group():
    return Group("shortmint-numbers", RECORDS + ALERTS)
