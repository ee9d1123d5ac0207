"""What happened: histograms, the ledger, verdicts and the record of a run. No I/O, no clock."""
