"""The rules of the model, one limit per file, with its source."""
