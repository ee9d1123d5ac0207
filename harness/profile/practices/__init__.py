"""The documented practices, by what they are about."""
