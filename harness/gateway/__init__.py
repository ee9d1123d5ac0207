"""A throttling gateway: a pure model of the published limits, and a proxy that applies it.

The proxy runs in front of a table endpoint. The model decides about each request; time is an
argument.
"""
