"""Paths of the gateway's own pages."""

TRUTH_PATH = "/-/truth"
METRICS_PATH = "/-/metrics"

HUNDREDTHS = "request_units_hundredths"
"""Name of the request units of a row; integers, so that sums are exact."""
