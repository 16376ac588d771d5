#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kills heapbpf while it puts in or takes out breakpoints.

    kill_at_edge.py attach|detach alone|sharers|all TARGET HEAPBPF ADDRESS...

ADDRESSes are where breakpoints come in the memory of the process TARGET. `attach` kills at the first
one that comes; `detach` waits for all, ends the recording by SIGINT and kills at the first one that
goes. `sharers`: as the kernel does when it kills for want of memory, all processes that have
HEAPBPF's memory are killed with it. `all`: its children are killed with it, as with a container.
Prints how many breakpoints were there then.
"""

import ctypes
import os
import signal
import sys

BREAKPOINT = b"\xcc"
SYS_KCMP, KCMP_VM = 312, 1


def sharers(pid):
    """Processes that have the memory of one."""
    libc = ctypes.CDLL(None, use_errno=True)
    others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != pid]
    if libc.syscall(SYS_KCMP, pid, pid, KCMP_VM, 0, 0):
        raise OSError(ctypes.get_errno(), "kcmp")
    return [other for other in others if libc.syscall(SYS_KCMP, pid, other, KCMP_VM, 0, 0) == 0]


def children(pid):
    """Of all its threads."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


WITH = {"alone": lambda pid: [], "sharers": sharers, "all": children}


def main():
    edge, who, target, heapbpf = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    memory = os.open(f"/proc/{target}/mem", os.O_RDONLY)
    addresses = [int(word) for word in sys.argv[5:]]

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
    for victim in [heapbpf] + WITH[who](heapbpf):
        os.kill(victim, signal.SIGKILL)
    print(sum(probed()))


main()
