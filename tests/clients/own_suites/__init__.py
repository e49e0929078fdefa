"""The test suites that clients bring along, as they run against a server of ours."""
