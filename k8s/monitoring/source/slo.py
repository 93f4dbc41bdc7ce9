"""Service level objectives, and alerts on the rate at which their error budgets are spent.

The method is the one of Google's SRE workbook, chapter 5: an alert fires if the budget burns too fast over
a long window, and still does so over a short one, which ends the alert soon after the cause.
"""

from dataclasses import dataclass

from .model import CRITICAL, WARNING, Alert, Group, Record

# Bad requests in the long window above which an alert fires. Where there is little traffic, a single one is
# a large share.
BAD_REQUESTS_MIN = 10

# The interval of this group. It is fixed, because a sum of rates times the interval counts requests.
INTERVAL_SECONDS = 60

WINDOWS = ["30m", "1h", "2h", "6h", "1d", "3d"]

# (severity, burn rate, long window, short window). With 30 days of budget, 14.4 spends 2 % in
# an hour, 6 spends 5 % in six hours, 3 spends 10 % in a day, and 1 spends 10 % in three days.
BURN_RATES = [
    (CRITICAL, 14.4, "1h", "5m"),
    (CRITICAL, 6, "6h", "30m"),
    (WARNING, 3, "1d", "2h"),
    (WARNING, 1, "3d", "6h"),
]


@dataclass(frozen=True)
class Slo:
    """An objective: the share of requests that have to be good, over 30 days."""

    name: str
    alert: str
    objective: float
    requests: str
    # Bad requests, or the good ones if `good` is set instead.
    bad: str
    good: str
    noun: str
    fault: str
    promise: str
    # Outages that this is a consequence of.
    follows: tuple
    # Whether a fast burn pages. Slow answers wait for working hours.
    pages: bool = True

    def records(self):
        labels = {"slo": self.name}
        requests = f"sum by (job, namespace) (rate({self.requests}[5m]))"
        if self.bad:
            # Without a bad request there is no series of one; the rate is then 0, not unknown.
            bad = f"sum by (job, namespace) (rate({self.bad}[5m]))\nor\n{requests} * 0"
        else:
            bad = f"{requests}\n-\nsum by (job, namespace) (rate({self.good}[5m]))"
        return [
            Record("shortmint:slo_requests:rate5m", requests, labels),
            Record("shortmint:slo_bad_requests:rate5m", bad, labels),
        ]

    def alerts(self):
        severities = (CRITICAL, WARNING) if self.pages else (WARNING,)
        return [self.alert_of(severity) for severity in severities]

    def alert_of(self, severity):
        burns = [burn for burn in BURN_RATES if burn[0] == severity or not self.pages]
        conditions = [self.condition(*burn[1:]) for burn in burns]
        is_fast = severity == CRITICAL
        speed = "lasts only days" if is_fast else "is spent faster than it is granted"
        return Alert(
            self.alert,
            severity,
            "\nor\n".join(conditions),
            f"{self.noun.capitalize()} {self.fault}: the error budget {speed}.",
            f"{{{{ $value | humanizePercentage }}}} of {self.noun} {self.fault}, over the alert's window. "
            f"The objective is that {self.promise}.",
            "2m" if is_fast else "15m",
            follows=self.follows,
        )

    def condition(self, burn, long, short):
        selector = f'{{slo="{self.name}"}}'
        limit = round(burn * (1 - self.objective), 6)
        return (
            "(\n"
            f"  shortmint:slo_bad_requests:ratio_rate{long}{selector} > {limit}\n"
            f"  and shortmint:slo_bad_requests:ratio_rate{short}{selector} > {limit}\n"
            f"  and sum_over_time(shortmint:slo_bad_requests:rate5m{selector}[{long}]) * {INTERVAL_SECONDS}"
            f" > {BAD_REQUESTS_MIN}\n"
            ")"
        )


REDIRECTS = 'resolver_request_duration_seconds_count{route="redirect"}'
CREATES = 'resolver_request_duration_seconds_count{route="create_short_url"}'

# Without Postgres or resolvers neither is answered, and without numbers no create is.
REDIRECTS_FOLLOW = ("postgres", "resolvers-redirects")
CREATES_FOLLOW = ("postgres", "resolvers-creates", "leader", "etcd", "issuers")


def durations(series, route, status, le=""):
    bucket = f',le="{le}"' if le else ""
    return f'resolver_request_duration_seconds_{series}{{route="{route}",status=~"{status}"{bucket}}}'


# Answers 429 are slow on purpose, so latencies are those of successful answers. Redirects count 200, which
# limited links answer to previews.
SLOS = [
    Slo(
        "redirect-availability",
        "ShortmintRedirectErrorBudgetBurn",
        0.999,
        REDIRECTS,
        durations("count", "redirect", "5.."),
        "",
        "redirects",
        "fail with 5xx",
        "99.9 % are answered without 5xx",
        REDIRECTS_FOLLOW,
    ),
    Slo(
        "create-availability",
        "ShortmintCreateErrorBudgetBurn",
        0.999,
        CREATES,
        durations("count", "create_short_url", "5.."),
        "",
        "creates",
        "fail with 5xx",
        "99.9 % are answered without 5xx",
        CREATES_FOLLOW,
    ),
    Slo(
        "redirect-latency",
        "ShortmintRedirectLatencyBudgetBurn",
        0.99,
        durations("count", "redirect", "[23].."),
        "",
        durations("bucket", "redirect", "[23]..", "0.025"),
        "redirects",
        "take more than 25 ms",
        "99 % take at most 25 ms",
        REDIRECTS_FOLLOW,
        pages=False,
    ),
    Slo(
        "create-latency",
        "ShortmintCreateLatencyBudgetBurn",
        0.99,
        durations("count", "create_short_url", "2.."),
        "",
        durations("bucket", "create_short_url", "2..", "0.5"),
        "creates",
        "take more than 500 ms",
        "99 % take at most 500 ms",
        CREATES_FOLLOW,
        pages=False,
    ),
]


def ratios():
    """Returns the rules of the bad share in each window. Sums of rates weigh busy minutes more."""
    now = "shortmint:slo_bad_requests:rate5m / shortmint:slo_requests:rate5m"
    records = [Record("shortmint:slo_bad_requests:ratio_rate5m", now)]
    for window in WINDOWS:
        bad, requests = (
            f"sum_over_time(shortmint:slo_{of}:rate5m[{window}])" for of in ("bad_requests", "requests")
        )
        records.append(Record(f"shortmint:slo_bad_requests:ratio_rate{window}", f"{bad}\n/\n{requests}"))
    return records


def group():
    records = [record for slo in SLOS for record in slo.records()]
    alerts = [alert for slo in SLOS for alert in slo.alerts()]
    return Group("objectives", records + ratios() + alerts, f"{INTERVAL_SECONDS}s")
