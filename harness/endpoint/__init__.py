"""The only room that talks to a table service."""
