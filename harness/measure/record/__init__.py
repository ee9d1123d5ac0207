"""The record of a run: versioned JSON, and how it is built."""
