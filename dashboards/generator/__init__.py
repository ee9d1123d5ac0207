"""Generates the committed Grafana dashboard: ``python -m dashboards.generator``."""
