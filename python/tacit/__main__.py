"""`python -m tacit`."""

from tacit.cli import main

main()
