#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares stacks of gdb (gdb_stacks.py) with those of a profile in the text form.

    gdb_compare.py NAME PROFILE STACKS DIFFERENCES

Prints a row of a markdown table: NAME, stacks in the profile, samples of gdb, distinct ones, those
equal, those equal as far as heapbpf's limit of depth goes, those that differ, the deepest. Writes
the ones that differ, each with the profile's most similar stack, to DIFFERENCES. Exit 1 if there is
one, or no sample at all.
"""

import re
import sys

# Where the text form puts what is no address: the marker of a cut stack.
MARKERS = 0x7FF0000000000000


def read_profile(path):
    """Sets of stacks: whole ones, and cut ones without their marker."""
    whole, cut = set(), set()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = re.match(r"\d+: \d+ \[\d+: \d+\] @ (0x.*)", line)
            if not found:
                continue
            stack = tuple(int(word, 16) for word in found[1].split())
            if stack[-1] >= MARKERS:
                cut.add(stack[:-1])
            else:
                whole.add(stack)
    return whole, cut


def likeness(one, other):
    """How many frames are equal, counted from both ends."""
    count = 0
    for a, b in ((one, other), (one[::-1], other[::-1])):
        for x, y in zip(a, b):
            if x != y:
                break
            count += 1
    return count


def write_differences(path, stacks, known):
    with open(path, "w", encoding="ascii") as out:
        for stack in stacks:
            nearest = max(known, key=lambda other: likeness(stack, other), default=())
            for who, addresses in (("gdb", stack), ("heapbpf", nearest)):
                print(who, *(f"{address:x}" for address in addresses), file=out)


def main(name, profile, stacks, differences):
    whole, cut = read_profile(profile)
    limit = max(map(len, cut), default=0)
    with open(stacks, encoding="ascii") as lines:
        samples = [tuple(int(word, 16) for word in line.split()) for line in lines]
    rest = [stack for stack in samples if stack not in whole]
    deep = [stack for stack in rest if len(stack) > limit > 0 and stack[:limit] in cut]
    wrong = [stack for stack in rest if stack not in deep]
    print("|", " | ".join(map(str, (
        name, len(whole) + len(cut), len(samples), len(set(samples)), len(samples) - len(rest),
        len(deep), len(wrong), max(map(len, samples), default=0)))), "|")
    if wrong:
        write_differences(differences, wrong, whole | cut)
    return 1 if wrong or not samples else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
