#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kills heapbpf while it puts in or takes out breakpoints.

    kill_at_edge.py attach|detach TARGET HEAPBPF ADDRESS...

ADDRESSes are where breakpoints come in the memory of the process TARGET. `attach` kills at the first
one that comes; `detach` waits for all, ends the recording by SIGINT and kills at the first one that
goes. Prints how many were there then.
"""

import os
import signal
import sys

BREAKPOINT = b"\xcc"


def main():
    edge, target, heapbpf = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    memory = os.open(f"/proc/{target}/mem", os.O_RDONLY)
    addresses = [int(word) for word in sys.argv[4:]]

    def probed():
        return [os.pread(memory, 1, address) == BREAKPOINT for address in addresses]

    # A heapbpf that fails never gets there.
    signal.alarm(100)
    if edge == "attach":
        while not any(probed()):
            pass
    else:
        while not all(probed()):
            pass
        os.kill(heapbpf, signal.SIGINT)
        while all(probed()):
            pass
    os.kill(heapbpf, signal.SIGKILL)
    print(sum(probed()))


main()
