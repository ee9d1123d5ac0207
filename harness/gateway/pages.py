"""Paths of the gateway's own pages."""

TRUTH_PATH = "/-/truth"
METRICS_PATH = "/-/metrics"
