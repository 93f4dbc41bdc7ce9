"""Alerts on numbers: what is left, what is held, and whether resolvers get more."""

from .model import CRITICAL, WARNING, Alert, Group, Record
from .promql import CREATING, KEYSPACE_LABELS, by_keyspace, silent

# Gauges of the ledger are on the leader's page alone, and on none for some seconds of a fail-over. A look
# back of three minutes bridges them, and "max" or "min" leaves one value if both leaders are within it.
LOOK_BACK = "3m"
BY = f"by ({KEYSPACE_LABELS})"


def gauge(record, aggregate, metric, by=BY):
    return Record(record, by_keyspace(f"{aggregate} {by}", f"last_over_time({metric}[{LOOK_BACK}])"))


ALLOCATED = "shortmint:keyspace_allocated:max"
NUMBERS = "shortmint:keyspace_numbers:max"
UNACCOUNTED = "shortmint:keyspace_unaccounted:max"
RATIO = "shortmint:keyspace_remaining:ratio"
SECONDS = "shortmint:keyspace_exhaustion_seconds:min"
LOW = "shortmint:keyspace_low:max"
ISSUED = "shortmint:numbers_issued:rate1h"

# A process that has just started gets short blocks, each twice as long as the one before.
GROWN = "(time() - process_start_time_seconds > 600)"

# What keeps a resolver from new numbers.
WITHOUT_BLOCKS = ("leader", "etcd", "issuers")

RECORDS = [
    gauge(ALLOCATED, "max", "issuer_namespace_allocated"),
    gauge(NUMBERS, "max", "issuer_numbers", f"by ({KEYSPACE_LABELS}, state)"),
    gauge(UNACCOUNTED, "max", "issuer_numbers_unaccounted"),
    gauge(RATIO, "min", "issuer_namespace_remaining_ratio"),
    gauge(SECONDS, "min", "issuer_namespace_exhaustion_seconds"),
    gauge(LOW, "max", "issuer_namespace_low"),
    # The ledger's own count: it outlives issuers and lost scrapes. It moves by whole blocks, each of about
    # ten minutes, so that an hour is the shortest window with a steady value.
    Record(ISSUED, f"sum by (job, namespace) (rate({ALLOCATED}[1h]))"),
]

ALERTS = [
    Alert(
        "ShortmintNumbersLow",
        WARNING,
        f"{RATIO} and on ({KEYSPACE_LABELS}) {LOW} == 1",
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
        "ShortmintBlocksOverlapping",
        CRITICAL,
        "sum by (job, namespace) (increase(resolver_blocks_overlapping_total[15m])) > 0",
        "The issuer allocates numbers that the database's register has already.",
        """{{ $value | printf "%.0f" }} blocks were refused in {{ $labels.job }} in 15 minutes. Either etcd
        was restored from a backup, or another ledger serves this database. No code is assigned twice.""",
    ),
    # A block lasts ten minutes, and the next one is requested before half of it is used. Four minutes leave
    # time to act; two would be over before the alert has fired.
    Alert(
        "ShortmintSupplyLow",
        WARNING,
        by_keyspace(f"min {BY}", f"resolver_supply_seconds and on (job, instance) {GROWN}") + " < 240",
        "Resolvers run out of numbers.",
        """The shortest supply of keyspace {{ $labels.keyspace }} in {{ $labels.job }} lasts {{ $value |
        humanizeDuration }}. Resolvers request the next block while half of a block of ten minutes is
        left.""",
        "1m",
        follows=WITHOUT_BLOCKS,
    ),
    Alert(
        "ShortmintSupplyEmpty",
        CRITICAL,
        # A keyspace that is used up stays so. If creates still need it, the objective of creates pages.
        by_keyspace(f"count {BY}", "resolver_numbers_in_hand == 0") + f" unless on (namespace, keyspace) {RATIO} == 0",
        "Resolvers have no numbers, so their creates fail.",
        """{{ $value }} resolvers of {{ $labels.job }} have no number of keyspace {{ $labels.keyspace }} in
        hand. Their creates wait for 10 s and are answered 503.""",
        "2m",
        follows=(*WITHOUT_BLOCKS, "postgres"),
    ),
    Alert(
        "ShortmintIssuerUnreachable",
        CRITICAL,
        silent("issuer", 180),
        "Resolvers get no answer from the issuers.",
        """{{ $value }} resolvers of {{ $labels.job }} have had no answer from an issuer for 3 minutes. They
        create links only until their numbers in hand are used up.""",
        outage="issuers",
        follows=("leader", "etcd"),
    ),
    Alert(
        "ShortmintRefillsFailing",
        WARNING,
        'sum by (job, namespace) (increase(resolver_refills_failed_total{reason="refused"}[5m])) > 0',
        "The issuer refuses calls of resolvers.",
        """{{ $value | printf "%.0f" }} calls of {{ $labels.job }} were refused in 5 minutes, and some were
        in each of the last 10 minutes.""",
        "10m",
        follows=WITHOUT_BLOCKS,
    ),
    # The issuers' count against the resolvers' own: each side is a job of its own, in one namespace.
    Alert(
        "ShortmintHoldersMissing",
        WARNING,
        f"""
        sum by (namespace) ({CREATING})
        - sum by (namespace) (max by (job, namespace) (issuer_holders_alive))
        > 0
        """,
        "The issuers do not hear of all resolvers.",
        """{{ $value }} resolvers in namespace {{ $labels.namespace }} run and are no living holders: they
        cannot get numbers, and others may reclaim those that they have.""",
        "5m",
        follows=WITHOUT_BLOCKS,
    ),
]


def group():
    return Group("numbers", RECORDS + ALERTS)
