"""What the asynchronous and the synchronous client have in common: everything that does no input or output."""
