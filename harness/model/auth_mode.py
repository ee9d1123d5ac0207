"""What signs requests, as Azure CLI names it. Chosen by the user, never by what is set."""

AUTH_MODE = "AZURE_STORAGE_AUTH_MODE"
"""The environment variable with the mode."""

KEY_MODE = "key"
"""The key or SAS in the environment."""
LOGIN_MODE = "login"
"""A login of Microsoft Entra ID."""
AUTH_MODES = (KEY_MODE, LOGIN_MODE)
