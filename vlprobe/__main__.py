"""`python -m vlprobe` is the command `vlprobe`."""

from vlprobe.cli.main import main

main()
