"""A trace as a load: its operations are made again, with made data for what they wrote."""
