"""Locust's web UI with the harness's pages, and who may use it."""
