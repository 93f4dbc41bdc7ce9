"""The dashboards: the platform at a glance, numbers, and resolvers.

Every query selects by the variable `job`. Metrics that have a label `namespace` of their own, the
keyspace, are not selected by the variable `namespace`.
"""

from . import numbers_board, overview_board, resolver_board


def all_dashboards():
    """Returns the dashboards by the names of their files."""
    return {
        "numbers": numbers_board.board(),
        "overview": overview_board.board(),
        "resolver": resolver_board.board(),
    }
