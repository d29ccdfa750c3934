"""The Try it page: your picture and your words, with the answer of each model while you type."""

from vlprobe.dashboard import frame
from vlprobe.dashboard.play import playground

frame.enter()
playground.playground()
