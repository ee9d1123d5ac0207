"""Hosts with addresses of their own on one bridge, for tests of several machines."""
