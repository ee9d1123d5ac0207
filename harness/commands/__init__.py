"""The subcommands of ``harness``. Nothing is imported here: each is imported when it is used."""
