"""What a profile may say: one class a TOML table, and their validation together."""
