"""The asynchronous client. Private: `windrow` re-exports what is public."""
