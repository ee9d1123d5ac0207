"""Makes the Grafana dashboard of this folder: ``python -m dashboards.generator``.

The JSON is committed, so that nobody needs this to use it; a test makes it again and compares.
"""
