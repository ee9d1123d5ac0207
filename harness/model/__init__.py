"""The words of the harness: operations, attempts, outcomes, entities, targets. Stdlib only."""
