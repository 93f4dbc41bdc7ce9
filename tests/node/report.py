"""The table at the end of a scenario, and its verdict."""

# How many of each are printed.
EXAMPLES, VIOLATIONS = 3, 20


class Report:
    """Collects rows and violations. Its end decides the exit code."""

    def __init__(self, title):
        self.title, self.rows, self.violations = title, [], []

    def row(self, what, figure):
        self.rows.append((what, str(figure)))

    def require(self, holds, violation):
        """Notes a violation unless the condition holds."""
        if not holds:
            self.violations.append(violation)

    def load(self, results, failures_allowed=False):
        """Rows for each client, and the promise that none of its requests fails."""
        labels = {"creates": "creates", "checks": "redirects, checked", "wrk": "redirects, wrk"}
        for name, label in labels.items():
            if counts := results.get(name):
                times = counts["milliseconds"]
                self.row(
                    label,
                    f"{counts['attempted']:,} at {counts['rate']:,}/s, {counts['failed']} failed; "
                    f"p50 {times['p50']} ms, p99 {times['p99']} ms, max {times['max']} ms",
                )
                if counts["failed"]:
                    self.row("", f"{counts['failures']}")
                if not failures_allowed:
                    self.require(
                        not counts["failed"],
                        f"{counts['failed']} {label} failed: {counts['failures']}"
                        f" {counts.get('examples', [])[:EXAMPLES]}",
                    )
        creates, verified = results["creates"], results["verify"]
        unaccounted = creates["attempted"] - creates["succeeded"] - creates["failed"]
        self.require(not unaccounted, f"{unaccounted} creates have neither succeeded nor failed")
        acknowledged, duplicates = creates["acknowledged"], creates["duplicates"]
        self.row("acknowledged", f"{acknowledged:,} codes, {len(duplicates)} twice")
        self.row("verified", f"{verified['succeeded']:,} of {verified['links']:,} links lead to their URL")
        self.require(not duplicates, f"codes were assigned twice: {duplicates[:5]}")
        self.require(verified["links"] == acknowledged + len(duplicates), "not all links were verified")
        self.require(not verified["failed"], f"links are lost: {verified['examples'][:EXAMPLES]}")

    def print(self):
        """Prints the table; returns the exit code."""
        width = max(len(what) for what, _ in self.rows)
        print(f"\n{self.title}")
        for what, figure in self.rows:
            print(f"  {what:<{width}}  {figure}")
        for violation in self.violations[:VIOLATIONS]:
            print(f"VIOLATION: {violation}")
        count = len(self.violations)
        print(f"failed, {count} violations" if count else "passed", flush=True)
        return 1 if self.violations else 0
