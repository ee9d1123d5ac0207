"""Acknowledged writes compared with what is stored after the run."""
