"""`tacit report`: one HTML file, complete in itself, of what commands print with `--json`."""
