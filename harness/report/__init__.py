"""What a person reads: pure functions from a record, or a snapshot, to text."""
