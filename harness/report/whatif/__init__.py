"""Key schemes side by side: what the traffic of a trace would meet under each."""
