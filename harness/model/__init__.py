"""The words of the harness: operations, attempts, outcomes, entities, targets. Standard library only."""
