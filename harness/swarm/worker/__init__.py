"""The part of a process that sends operations: users, pacing, sessions, reports to the master."""
