# Made from windrow/_async/__init__.py by python/tools/async_to_sync.py; edit that file.
"""The asynchronous client. Private: `windrow` re-exports what is public."""
