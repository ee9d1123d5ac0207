"""A record as HTML: the report of a run as one file, and what the live page is made of."""
