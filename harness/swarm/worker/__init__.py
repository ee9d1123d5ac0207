"""What a process does that sends: users, pacing, sessions, reports to the master."""
