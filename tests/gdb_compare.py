#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares stacks of gdb (gdb_stacks.py) with those of a profile in the text form.

    gdb_compare.py NAME PROFILE STACKS DIFFERENCES

Prints a row of a markdown table: NAME, stacks in the profile, samples of gdb, distinct ones, those
equal, those equal as far as heapbpf's limit of depth goes, those equal as far as a stack goes that
heapbpf marks as cut for another reason, those that differ, the deepest. Names the reasons of the
cut ones on standard error. Writes the ones that differ, each with the profile's most similar stack,
to DIFFERENCES.

Exit 1 if one differs, if more are cut than CUT_PERCENT or than the profile counts, or if there are
fewer samples or fewer distinct ones than say something.
"""

import collections
import re
import sys

# Where the text form puts what is no address: the marker of a cut stack.
MARKERS = 0x7FF0000000000000
DEPTH = "[truncated]"
# Least numbers for a judgement.
SAMPLES_MIN = 300
DISTINCT_MIN = 100
# Of the samples: while a library is loaded, its process's stacks are cut.
CUT_PERCENT = 2


class Recording:
    """The stacks of a profile: whole ones, and cut ones without their marker."""

    def __init__(self, path):
        self.whole = set()
        self.deep = set()
        self.cut = collections.Counter()  # how many samples have which stack, by (stack, reason)
        self.reasons = {}
        marked = []
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                sample = re.match(r"\d+: \d+ \[(\d+): \d+\] @ (0x.*)", line)
                name = re.match(r"#\t(0x[0-9a-f]+)\t(\[[^\t]*\])$", line)
                if name:
                    self.reasons[int(name[1], 16)] = name[2]
                elif sample:
                    stack = tuple(int(word, 16) for word in sample[2].split())
                    if stack[-1] < MARKERS:
                        self.whole.add(stack)
                    else:
                        marked.append((stack, int(sample[1])))
        for stack, count in marked:
            # A return address in the text is one more than the place that is named.
            reason = self.reasons[stack[-1] - 1]
            if reason == DEPTH:
                self.deep.add(stack[:-1])
            else:
                self.cut[stack[:-1], reason] += count

    def stacks(self):
        """All of them, without markers."""
        return self.whole | self.deep | {stack for stack, _ in self.cut}

    def is_deep(self, stack):
        """Is it one that was recorded as far as the limit of depth goes?"""
        return any(len(stack) > len(start) and stack[:len(start)] == start for start in self.deep)

    def cut_of(self, stack):
        """The longest stack, with its reason, that was marked as cut and is the start of this."""
        starts = [(start, reason) for start, reason in self.cut
                  if len(stack) > len(start) and stack[:len(start)] == start]
        return max(starts, key=lambda entry: len(entry[0]), default=None)


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


def complaints(recording, samples, cut, wrong):
    """What is not as it must be."""
    if wrong:
        yield f"{len(wrong)} stacks differ"
    for (stack, reason), count in cut.items():
        if count > recording.cut[stack, reason]:
            yield f"{count} samples are cut at {reason} where {recording.cut[stack, reason]} may be"
    if sum(cut.values()) * 100 > len(samples) * CUT_PERCENT:
        yield f"{sum(cut.values())} cut samples are more than {CUT_PERCENT} percent"
    if len(samples) < SAMPLES_MIN:
        yield f"{len(samples)} samples are fewer than {SAMPLES_MIN}"
    if len(set(samples)) < DISTINCT_MIN:
        yield f"{len(set(samples))} distinct stacks are fewer than {DISTINCT_MIN}"


def main(name, profile, stacks, differences):
    recording = Recording(profile)
    with open(stacks, encoding="ascii") as lines:
        samples = [tuple(int(word, 16) for word in line.split()) for line in lines]
    rest = [stack for stack in samples if stack not in recording.whole]
    deep = [stack for stack in rest if recording.is_deep(stack)]
    cut = collections.Counter()
    wrong = []
    for stack in rest:
        start = recording.cut_of(stack)
        if start and not recording.is_deep(stack):
            cut[start] += 1
        elif not recording.is_deep(stack):
            wrong.append(stack)
    print("|", " | ".join(map(str, (
        name, len(recording.stacks()), len(samples), len(set(samples)), len(samples) - len(rest),
        len(deep), sum(cut.values()), len(wrong), max(map(len, samples), default=0)))), "|")
    for (stack, reason), count in cut.items():
        print(f"{name}: {count} samples are cut after {len(stack)} frames: {reason}",
              file=sys.stderr)
    if wrong:
        write_differences(differences, wrong, recording.stacks())
    unfit = list(complaints(recording, samples, cut, wrong))
    for complaint in unfit:
        print(f"{name}: {complaint}", file=sys.stderr)
    return 1 if unfit else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
