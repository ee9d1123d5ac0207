"""The leading process: it prepares, loads, measures, judges and records a run."""
