"""The ways to send an operation; `harness.endpoint.sessions.registry` names them."""
