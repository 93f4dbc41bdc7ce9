"""Options of the chart's tests."""


def pytest_addoption(parser):
    parser.addoption(
        "--all-versions",
        action="store_true",
        help="validate against each version of Kubernetes, not only the oldest and the newest",
    )
