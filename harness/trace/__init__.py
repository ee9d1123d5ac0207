"""Traces: the operations of a run or of an application, recorded to be looked at and sent again."""
