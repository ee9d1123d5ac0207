"""What if the traffic of a trace had other keys: the calculation, which sends nothing."""
