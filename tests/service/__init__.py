"""The server as an operator runs it: crowds, signals, refusals. Every test has real processes."""
