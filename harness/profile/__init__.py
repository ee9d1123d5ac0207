"""Profiles: TOML becomes a frozen tree, or the list of all its errors."""
