"""Makes the documentation site, and the reference pages that come from the code."""
