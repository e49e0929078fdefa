"""What the whole-system tests stand on: processes under test, a raw HTTP client, comparison of answers."""
