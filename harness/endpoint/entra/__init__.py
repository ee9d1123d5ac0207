"""Logins with Microsoft Entra ID: access tokens of the process, fetched, renewed, explained."""
