"""The state of a run as Prometheus metrics. The only package that imports ``prometheus_client``."""
