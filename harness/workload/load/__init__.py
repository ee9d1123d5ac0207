"""When operations are sent: pacing, schedules, and the search for the highest rate."""
