"""The command line: parses arguments, calls numtok, prints. Installed as ``numtok_cli``."""
