"""What is counted: ledger, tallies, histograms, heavy hitters, snapshots."""
