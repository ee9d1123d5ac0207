"""The only package that talks to a table service."""
