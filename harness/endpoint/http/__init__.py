"""One request over a bounded pool of connections, without a second try."""
