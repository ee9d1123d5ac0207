"""The rules of the model, one small class each: what a limit holds, and when it refuses."""
