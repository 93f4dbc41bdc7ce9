"""Panels that more than one dashboard has."""

from .grafana import Panel, Query, Row

OURS = 'job=~"$job",namespace=~"$namespace"'
QUANTILES = [0.5, 0.99, 0.999]


def latency(title, histogram, selector, about="", width=8, lines=()):
    """A panel of quantiles of a histogram over all pods."""
    rate = f"sum by (le) (rate({histogram}_bucket{{{selector}}}[$__rate_interval]))"
    queries = [Query(f"histogram_quantile({q}, {rate})", f"p{100 * q:g}") for q in QUANTILES]
    return Panel(title, queries, "s", width=width, about=about, lines=list(lines))


def rates(title, metrics, selector, by="pod", width=8, about="", unit="cps"):
    """A panel of the rates of counters, as (metric, legend)."""
    queries = [
        Query(f"sum by ({by}) (rate({metric}{{{selector}}}[$__rate_interval]))", legend)
        for metric, legend in metrics
    ]
    return Panel(title, queries, unit, width=width, about=about)


def processes():
    """A row of the processes of both daemons."""
    own = f'and on (job, instance) {{__name__=~"(issuer|resolver)_build_info",{OURS}}}'
    legend = "{{pod}} {{instance}}"
    return Row(
        "Processes",
        [
            Panel(
                "Processor time",
                [Query(f'rate(process_cpu_seconds_total{{job=~"$job"}}[5m]) {own}', legend)],
                about="Cores in use. The counter has whole seconds, so the rate is over five minutes.",
            ),
            Panel(
                "Memory", [Query(f'process_resident_memory_bytes{{job=~"$job"}} {own}', legend)], "bytes"
            ),
            Panel(
                "Versions",
                [
                    Query(f"count by (version) ({daemon}_build_info{{{OURS}}})", f"{daemon} {{{{version}}}}")
                    for daemon in ("issuer", "resolver")
                ],
                stacked=True,
            ),
        ],
    )
