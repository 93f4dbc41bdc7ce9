"""Inhibition rules of Alertmanager: an outage pages once.

An alert with the label `outage` names the part that is away. Alerts whose label `follows` lists that part stay
quiet meanwhile: what they report is a consequence. Both have to be of one namespace; jobs differ between issuers
and resolvers.
"""

# A warning is quiet while the same alert pages.
OF_ONE_ALERT = {
    "source_matchers": ['severity="critical"', 'alertname=~"Shortmint.+"'],
    "target_matchers": ['severity="warning"'],
    "equal": ["alertname", "namespace", "job", "instance", "keyspace", "serves", "certificate"],
}


def outages(alerts):
    """Returns the parts that may be away, in the order of their alerts."""
    return list(dict.fromkeys(alert.outage for alert in alerts if alert.outage))


def unknown(alerts):
    """Yields the alerts that follow an outage that no alert reports."""
    known = outages(alerts)
    for alert in alerts:
        yield from (f"{alert.name} follows {part}: no outage" for part in alert.follows if part not in known)


def inhibit_rules(alerts):
    """Returns the section `inhibit_rules` of Alertmanager's configuration."""
    rules = [
        {
            "source_matchers": [f'outage="{part}"'],
            "target_matchers": [f'follows=~"(.+,)?{part}(,.+)?"'],
            "equal": ["namespace"],
        }
        for part in outages(alerts)
    ]
    return {"inhibit_rules": [*rules, OF_ONE_ALERT]}
