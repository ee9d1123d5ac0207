"""What the process does that leads: preparing, loading, measuring, judging, recording."""
