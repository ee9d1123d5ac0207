"""The table service's protocol: EDM types, OData filters, multipart, errors."""
