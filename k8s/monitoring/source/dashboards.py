"""The dashboards: the platform and its objectives, resolvers, issuers and numbers, visits and stores.

Every query selects by the variable `job`. Metrics that have a label `namespace` of their own, the
keyspace, are not selected by the variable `namespace`.
"""

from . import issuer_board, overview_board, resolver_board, stores_board


def all_dashboards():
    """Returns the dashboards by the names of their files."""
    return {
        "issuer": issuer_board.board(),
        "overview": overview_board.board(),
        "resolver": resolver_board.board(),
        "stores": stores_board.board(),
    }
