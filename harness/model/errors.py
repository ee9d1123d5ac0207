"""What went wrong before the load began, as a sentence for the person who started it."""

from __future__ import annotations


class SetupError(Exception):
    """Bad input or a bad set-up; its text is the whole sentence a user reads.

    It leads to exit code 2. The text never holds a secret.
    """
