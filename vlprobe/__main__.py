"""`python -m vlprobe` is the command `vlprobe`."""

from vlprobe.cli import main

main()
