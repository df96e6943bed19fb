"""The only code that talks to an API server: credentials, requests, watches, caches and Events."""
