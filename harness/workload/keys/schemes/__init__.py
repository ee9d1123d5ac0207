"""Every documented key scheme; `harness.workload.keys.schemes.registry` names them."""
