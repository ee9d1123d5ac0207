"""What the counts mean: evidence, bottleneck, verdict, advice, pass conditions."""
