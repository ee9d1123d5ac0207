"""The harness's pages in Locust's web UI, and the access to them."""
