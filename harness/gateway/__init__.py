"""A throttling stand-in: a pure model of the published limits, and a proxy around it.

The model decides about each request with time as an argument; the proxy does what it says, before
a real table endpoint.
"""
