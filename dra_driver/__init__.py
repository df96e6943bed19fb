"""The shared vocabulary of the DRA driver: API objects, devices, the way to the API server.

It knows neither of the two processes that are built on it.
"""
