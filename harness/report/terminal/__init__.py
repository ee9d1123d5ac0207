"""The record of a run as a terminal shows it."""
