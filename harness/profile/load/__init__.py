"""Load models: when operations are due, one model a file."""
