"""What to send, to which keys, when, and when again. Standard library only."""
