"""Addresses, credentials, signatures."""
