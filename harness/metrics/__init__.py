"""What Prometheus sees of a run. The only room that knows ``prometheus_client``."""
