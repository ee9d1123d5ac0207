"""The lean session: requests of the Table protocol as bytes, and only what is needed of answers.

It sends what the SDK sends and reads what the SDK reads; a differential test holds it to that.
"""
