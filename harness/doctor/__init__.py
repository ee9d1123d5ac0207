"""The state of machine and endpoint before a run: `harness doctor`."""
