"""The embedded Azurite: one pinned version, installed into the environment, started as a child."""
