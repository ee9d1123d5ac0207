"""What the practices look at: in a profile, and in the record of a run."""
