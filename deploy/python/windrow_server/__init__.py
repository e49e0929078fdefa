"""Windrow's server. The commands `windrow` and `windrow-server` begin here, and the program takes this process over."""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(__file__).with_name("windrow")


def main() -> NoReturn:
    # Python ignores them, and what is ignored stays so in the program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(PROGRAM, ["windrow", *sys.argv[1:]])
