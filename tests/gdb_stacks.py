# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs inside gdb, attached to a process: writes the stack of every n-th call of a function.

Environment: STACKS_AT (address of an instruction that each call executes once, hexadecimal),
STACKS_EVERY (n), STACKS_COUNT (how many), STACKS_OUT (a file: a line of return addresses each, from
the function's caller to the outermost frame), STACKS_READY (a file that gets a line when the
breakpoint is in place).
"""

import os

import gdb

AT = int(os.environ["STACKS_AT"], 16)
EVERY = int(os.environ["STACKS_EVERY"])
COUNT = int(os.environ["STACKS_COUNT"])
OUT = open(os.environ["STACKS_OUT"], "w", encoding="ascii")


def return_addresses():
    """All frames that the process has; those that gdb makes up for inlined and jumping ones not."""
    addresses = []
    frame = gdb.newest_frame()
    while frame:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            addresses.append(frame.pc())
        frame = frame.older()
    return addresses[1:]


def is_diverted(addresses):
    """Is one of them the kernel's page to which return probes let functions return?"""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            if not line.rstrip().endswith("[uprobes]"):
                continue
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            return any(start <= address < end for address in addresses)
    return False


class Sampler(gdb.Breakpoint):
    """Stops only when it has seen enough."""

    def __init__(self):
        super().__init__(f"*{AT:#x}", internal=True)
        self.calls = 0
        self.taken = 0

    def stop(self):
        self.calls += 1
        if self.calls % EVERY:
            return False
        # Libraries that were loaded since; gdb does not notice all of them by itself.
        gdb.execute("sharedlibrary", to_string=True)
        addresses = return_addresses()
        if is_diverted(addresses):
            # Somebody has a return probe on this function, in whatever process; gdb is lost.
            self.calls -= 1
            return False
        print(*(f"{address:x}" for address in addresses), file=OUT)
        self.taken += 1
        return self.taken >= COUNT


for setting in ("backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited",
                "pagination off", "confirm off"):
    gdb.execute(f"set {setting}")
gdb.execute("handle all nostop noprint pass", to_string=True)
SAMPLER = Sampler()
with open(os.environ["STACKS_READY"], "w", encoding="ascii") as ready:
    print("ready", file=ready)
gdb.execute("continue", to_string=True)
OUT.close()
if gdb.selected_inferior().pid:
    SAMPLER.delete()
    gdb.execute("detach", to_string=True)
