"""The requests around a run: probe, tables made, listed, emptied and deleted."""
