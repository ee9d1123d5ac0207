"""The practices that a profile is held against, by what they are about."""
