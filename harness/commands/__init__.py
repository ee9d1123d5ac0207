"""The subcommands of ``harness``: one module a command, or a group of them."""
