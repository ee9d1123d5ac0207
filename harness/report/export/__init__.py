"""The record of a run as files: Markdown, JUnit, CSV, HdrHistogram log."""
