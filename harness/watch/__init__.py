"""An application of the user, measured while it runs: its requests pass through the gateway."""
