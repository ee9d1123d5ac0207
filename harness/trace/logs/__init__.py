"""Logs of Azure Storage, read as traces."""
