"""Which keys the traffic of a trace needs."""
