#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a gzipped profile.proto with nothing but the standard library.

The tests' second opinion: it shares no code with heapbpf or with pprof.

    pprof_read.py valid PROFILE            structural rules; complains and exits 1
    pprof_read.py compare [--only] [--within TYPE] TRUTH PROFILE
    pprof_read.py cum PROFILE              function and its cumulative values
    pprof_read.py sizes PROFILE            object size and its values
    pprof_read.py stacks PROFILE           values, object size, leaf;...;root
    pprof_read.py chains TRUTH PROFILE FILE  stacks are those that the target FILE told
    pprof_read.py total PROFILE TYPE       sum of a sample type
    pprof_read.py most PROFILE TYPE        sum and stack of where the most of it is
    pprof_read.py part PROFILE TYPE REGEX  sum of the stacks (leaf;...;root) that match, and of all
    pprof_read.py types|mappings|comments|facts|functions PROFILE
    pprof_read.py roots PROFILE            objects and the outermost function of their stacks
    pprof_read.py paths PROFILE            stacks of the target `paths` carry their own size
    pprof_read.py estimates TRUTH PROFILE  replicates of the target `mix` against theory

TRUTH has lines "SITE function alloc_objects alloc_bytes inuse_objects inuse_bytes"; "-" leaves a
number open.
"""

import collections
import gzip
import math
import re
import struct
import sys

TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def varint(data, pos):
    """Decodes one varint; returns (value, next position)."""
    shift = value = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, pos
        shift += 7


def fields(data):
    """Yields (field number, value): int for varints, bytes for the rest."""
    pos = 0
    while pos < len(data):
        key, pos = varint(data, pos)
        if key & 7 == 0:
            value, pos = varint(data, pos)
        elif key & 7 == 2:
            length, pos = varint(data, pos)
            if pos + length > len(data):
                raise ValueError("field runs over the end")
            value = data[pos:pos + length]
            pos += length
        else:
            raise ValueError(f"wire type {key & 7} is not used by profile.proto")
        yield key >> 3, value


def signed(value):
    """An int64 as encoded in a varint."""
    return value - (1 << 64) if value >> 63 else value


def numbers(values):
    """A repeated integer field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        pos = 0
        while pos < len(value):
            number, pos = varint(value, pos)
            out.append(signed(number))
    return out


class Message:
    """Fields of a message by number."""

    def __init__(self, data):
        self.by_number = collections.defaultdict(list)
        for number, value in fields(data):
            self.by_number[number].append(value)

    def num(self, number):
        values = self.by_number[number]
        return signed(values[-1]) if values else 0

    def all(self, number):
        return self.by_number[number]


class Location:
    """An address with its frames, innermost first: (function name, file, line)."""

    def __init__(self, message, profile):
        self.id = message.num(1)
        self.mapping_id = message.num(2)
        self.address = message.num(3) & (1 << 64) - 1
        self.lines = []
        for raw in message.all(4):
            line = Message(raw)
            self.lines.append((profile.functions[line.num(1)], line.num(2)))

    def names(self):
        """Names of its frames; the address where there are none."""
        if not self.lines:
            return [f"{self.address:#x}"]
        return [function["name"] for function, _ in self.lines]


class Profile:
    """A profile.proto with its references resolved."""

    def __init__(self, path):
        raw = open(path, "rb").read() if path != "-" else sys.stdin.buffer.read()
        top = Message(gzip.decompress(raw))
        self.top = top
        self.strings = [value.decode() for value in top.all(6)]
        self.types = [self.value_type(value) for value in top.all(1)]
        self.functions = {}
        for value in top.all(5):
            message = Message(value)
            self.functions[message.num(1)] = {
                "id": message.num(1),
                "name": self.strings[message.num(2)],
                "system_name": self.strings[message.num(3)],
                "file": self.strings[message.num(4)],
                "start_line": message.num(5),
            }
        self.mappings = {}
        for value in top.all(3):
            message = Message(value)
            self.mappings[message.num(1)] = {
                "id": message.num(1),
                "start": message.num(2) & (1 << 64) - 1,
                "limit": message.num(3) & (1 << 64) - 1,
                "offset": message.num(4) & (1 << 64) - 1,
                "file": self.strings[message.num(5)],
                "build_id": self.strings[message.num(6)],
                "flags": tuple(message.num(number) for number in (7, 8, 9, 10)),
            }
        self.locations = {}
        for value in top.all(4):
            location = Location(Message(value), self)
            self.locations[location.id] = location
        self.samples = [self.sample(Message(value)) for value in top.all(2)]
        self.drop_frames = self.strings[top.num(7)]
        self.time_nanos = top.num(9)
        self.duration_nanos = top.num(10)
        self.period_type = [self.value_type(value) for value in top.all(11)]
        self.period = top.num(12)
        self.comments = [self.strings[index] for index in numbers(top.all(13))]
        self.default_type = self.strings[top.num(14)]

    def value_type(self, data):
        message = Message(data)
        return self.strings[message.num(1)], self.strings[message.num(2)]

    def sample(self, message):
        labels = {}
        for raw in message.all(3):
            label = Message(raw)
            labels[self.strings[label.num(1)]] = label.num(3)
        return {
            "locations": [self.locations[i] for i in numbers(message.all(1))],
            "values": numbers(message.all(2)),
            # Objects of 0 bytes have no label, as in Go's profiles.
            "bytes": labels.get("bytes", 0),
        }

    def column(self, name):
        """Index of a sample type in a sample's values."""
        for index, (kind, _) in enumerate(self.types):
            if kind == name:
                return index
        raise SystemExit(f"no sample type {name}; there are {self.types}")


def stack_names(sample):
    """Function names from leaf to root, inlined ones included."""
    return [name for location in sample["locations"] for name in location.names()]


def most(profile, kind):
    """The largest sum of a sample type in one stack, over all sizes, and the stack."""
    column = profile.column(kind)
    sums = collections.Counter()
    for sample in profile.samples:
        sums[";".join(stack_names(sample))] += sample["values"][column]
    return next(((value, stack) for stack, value in sums.most_common(1)), (0, ""))


def part(profile, kind, regex):
    """Sums of a sample type: of the stacks in which the regular expression is found, and of all."""
    column = profile.column(kind)
    found = everything = 0
    for sample in profile.samples:
        everything += sample["values"][column]
        if re.search(regex, ";".join(stack_names(sample))):
            found += sample["values"][column]
    return found, everything


def base_name(name):
    """A C++ name without its parameters."""
    return name.split("(")[0] if not name.startswith("(") else name


def cumulative(profile):
    """Function -> values, each sample counted once per function."""
    sums = collections.defaultdict(lambda: [0] * len(profile.types))
    for sample in profile.samples:
        for name in {base_name(name) for name in stack_names(sample)}:
            for index, value in enumerate(sample["values"]):
                sums[name][index] += value
    return sums


def read_truth(path):
    """Function -> the four numbers, None where open."""
    truth = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words and words[0] == "SITE":
                truth[words[1]] = [None if word == "-" else int(word) for word in words[2:6]]
    if not truth:
        raise SystemExit(f"{path}: no SITE lines")
    return truth


def compare(truth_path, profile_path, only, within):
    """Every site equal; with `only`, nothing but sites in the profile."""
    truth = read_truth(truth_path)
    profile = Profile(profile_path)
    sums = cumulative(profile)
    wrong = 0
    for name, expected in truth.items():
        for index, (kind, _) in enumerate(profile.types):
            if within and kind != within:
                continue
            want = expected[TYPES.index(kind)]
            have = sums[name][index] if name in sums else 0
            if want is not None and want != have:
                print(f"{name}: {kind} is {have}, not {want}", file=sys.stderr)
                wrong += 1
    if only:
        for sample in profile.samples:
            names = [base_name(name) for name in stack_names(sample)]
            if not any(name in truth for name in names):
                print(f"unexpected: {sample['values']} at {';'.join(names)}", file=sys.stderr)
                wrong += 1
    return wrong


def valid(profile):
    """Rules of profile.proto and of heapbpf's own promise; yields complaints."""
    if profile.strings[0] != "":
        yield "string 0 is not empty"
    if len(set(profile.strings)) != len(profile.strings):
        yield "a string is there twice"
    expected = {
        TYPES: "inuse_space",
        TYPES[:2]: "alloc_space",
        TYPES[2:]: "inuse_space",
    }
    kinds = tuple(kind for kind, _ in profile.types)
    if kinds not in expected:
        yield f"sample types {kinds}"
    elif profile.default_type != expected[kinds]:
        yield f"default sample type {profile.default_type} of {kinds}"
    for kind, unit in profile.types:
        if unit != ("bytes" if kind.endswith("space") else "count"):
            yield f"unit of {kind} is {unit}"
    if profile.period_type != [("space", "bytes")] or profile.period < 1:
        yield f"period {profile.period} {profile.period_type}"
    if profile.time_nanos <= 0 or profile.duration_nanos <= 0:
        yield f"time {profile.time_nanos}, duration {profile.duration_nanos}"
    re.compile(profile.drop_frames)
    yield from valid_samples(profile)
    yield from valid_locations(profile)


def valid_samples(profile):
    seen = set()
    for sample in profile.samples:
        key = (tuple(location.id for location in sample["locations"]), sample["bytes"])
        if key in seen:
            yield f"sample {key} is there twice"
        seen.add(key)
        if not sample["locations"]:
            yield f"sample without a location: {sample['values']}"
        spaces = [value for value, (_, unit) in zip(sample["values"], profile.types)
                  if unit == "bytes"]
        if sample["bytes"] == 0 and any(spaces):
            yield f"sample of bytes without the label bytes: {stack_names(sample)}"
        if len(sample["values"]) != len(profile.types):
            yield f"sample with {len(sample['values'])} values"
        if any(value < 0 for value in sample["values"]):
            yield f"negative value {sample['values']}"
        if not any(sample["values"]) and sample["bytes"] != 0:
            yield f"sample of nothing: {stack_names(sample)}"


def valid_locations(profile):
    used = {location.id for sample in profile.samples for location in sample["locations"]}
    for location in profile.locations.values():
        if location.id not in used:
            yield f"location {location.id} is not used"
        if location.mapping_id and location.mapping_id not in profile.mappings:
            yield f"location {location.id} names mapping {location.mapping_id}"
        elif location.mapping_id:
            mapping = profile.mappings[location.mapping_id]
            if not mapping["start"] <= location.address < mapping["limit"]:
                yield f"{location.address:#x} is not in its mapping {mapping}"
        for name in location.names():
            if not name:
                yield f"empty name at {location.address:#x}"
            if "[uprobes]" in name:
                yield "a frame in [uprobes]"
    for mapping in profile.mappings.values():
        if "[uprobes]" in mapping["file"]:
            yield "mapping [uprobes]"


class Frame:
    """One function of a stack; `place`: "own" (the target's file), "foreign", "nowhere", "mark"."""

    def __init__(self, name, place):
        self.name = name
        self.place = place

    def fits(self, token):
        """Is it what a token of tests/targets/frames.h means?"""
        if token == "*":
            return self.place == "foreign"
        if token == "?":
            return self.place == "nowhere"
        if token == "=":
            return self.place == "own" and self.name.startswith("0x")
        if token == "!":
            return self.place in ("own", "foreign")
        if token.startswith("["):
            return self.place == "mark" and self.name in token.split("|")
        return self.name in token.split("|")


def frames_of(profile, sample, program):
    """The frames of a sample, leaf first."""
    frames = []
    for location in sample["locations"]:
        place = "nowhere" if location.address else "mark"
        if location.mapping_id:
            own = profile.mappings[location.mapping_id]["file"].endswith(program)
            place = "own" if own else "foreign"
        frames += [Frame(base_name(name), place) for name in location.names()]
    return frames


def tokens_of(text):
    """The tokens of a chain, name{n} written out."""
    tokens = []
    for word in text.split(";"):
        repeated = re.fullmatch(r"(.*)\{(\d+)\}", word)
        tokens += [repeated[1]] * int(repeated[2]) if repeated else [word]
    return tokens


def fits(frames, tokens):
    """Do the tokens describe all the frames?"""
    # States: the tokens that may be the current one.
    states = {0}
    for frame in frames:
        after = set()
        for state in states:
            if state < len(tokens) and frame.fits(tokens[state]):
                after.add(state + 1)
            if state and tokens[state - 1] == "*" and frame.fits("*"):
                after.add(state)
        states = after
    return len(tokens) in states


def chains(truth_path, profile_path, program):
    """Every CHAIN of the truth is there, alone with its size; prints how many of which end."""
    profile = Profile(profile_path)
    by_size = collections.defaultdict(list)
    for sample in profile.samples:
        by_size[sample["bytes"]].append(sample)
    ends = collections.Counter()
    wrong = 0
    with open(truth_path, encoding="utf-8") as lines:
        truth = [line.split(maxsplit=3) for line in lines if line.startswith("CHAIN ")]
    for _, size, objects, text in truth:
        alternatives = [tokens_of(chain) for chain in text.strip().split(" or ")]
        count = 0
        for sample in by_size[int(size)]:
            frames = frames_of(profile, sample, program)
            if any(fits(frames, tokens) for tokens in alternatives):
                ends[frames[-1].name] += sample["values"][0]
                count += sample["values"][0]
                continue
            print(f"{size}: {';'.join(frame.name for frame in frames)}\n"
                  f"   not {text}", file=sys.stderr)
            wrong += 1
        if count != int(objects):
            print(f"{size}: {count} objects, not {objects}, of {text}", file=sys.stderr)
            wrong += 1
    for end, count in sorted(ends.items()):
        print(count, end)
    return wrong or not truth


def entry_offset(path):
    """Offset in an ELF file of the code that it starts with; -1: it has none."""
    with open(path, "rb") as file:
        image = file.read(64 + 56 * 64)
    if image[:5] != b"\x7fELF\x02":
        return -1
    entry, headers = struct.unpack_from("<QQ", image, 24)
    size, count = struct.unpack_from("<HH", image, 54)
    for n in range(count):
        kind, _, offset, vma, _, length = struct.unpack_from("<IIQQQQ", image, headers + n * size)
        if kind == 1 and vma <= entry < vma + length:
            return entry - vma + offset
    return -1


def root_of(profile, sample):
    """The outermost function; "entry" where the kernel starts a program, named or not."""
    root = sample["locations"][-1]
    mapping = profile.mappings.get(root.mapping_id)
    if mapping and mapping["file"].startswith("/"):
        entry = entry_offset(mapping["file"])
        offset = root.address - mapping["start"] + mapping["offset"]
        # _start is shorter than this.
        if 0 <= entry <= offset < entry + 48:
            return "entry"
    return root.names()[-1]


def roots(profile):
    """Prints how many objects have stacks that end where."""
    count = collections.Counter()
    for sample in profile.samples:
        count[root_of(profile, sample)] += sample["values"][0]
    for name, objects in count.most_common():
        print(objects, name)


def paths(profile):
    """Each stack of step_a/step_b calls encodes its object's size: bit n is the n-th call."""
    sizes = {}
    for sample in profile.samples:
        steps = [name for name in stack_names(sample) if name in ("step_a", "step_b")]
        if not steps:
            continue
        code = 0
        for name in reversed(steps):
            code = code << 1 | (name == "step_b")
        if sample["bytes"] != code + 1 or sample["values"][:2] != [1, code + 1]:
            print(f"path {code} carries {sample['bytes']}, {sample['values']}", file=sys.stderr)
            return 1
        sizes[code] = sample["bytes"]
    print(len(sizes))
    return 0


def probability(size, rate):
    """Chance of a sample, as documented."""
    return 1.0 if rate == 1 else 1 - math.exp(-size / rate)


def chance_of_count(count, tries, p):
    """The chance that so many or fewer of the tries succeed, or so many or more, whichever is less."""
    if p == 1.0:
        return 1.0 if count == tries else 0.0

    def log_term(n):
        return (math.lgamma(tries + 1) - math.lgamma(n + 1) - math.lgamma(tries - n + 1)
                + n * math.log(p) + (tries - n) * math.log1p(-p))

    def tail(step):
        total, n = 0.0, count
        while 0 <= n <= tries:
            term = math.exp(log_term(n))
            total += term
            # Beyond the mean, terms only get smaller.
            if (n - tries * p) * step > 0 and term < total * 1e-12:
                break
            n += step
        return total

    return tail(1) if count > tries * p else tail(-1)


def normal_of_spread(values, objects, p):
    """
    How far the spread of estimates is from what it should be: near a standard normal, and beyond
    7 less than once in ten million times, however rare a sample is. The sum of squares is taken for
    a gamma variable with the variance that it has, by the fourth moment of the binomial, and that
    for a normal one by its cube root (Wilson and Hilferty 1931). 0 where hardly any object is the
    exception from all, or from none.
    """
    variance = objects * (1 - p) / p
    if len(values) * objects * p * (1 - p) < 4:
        return 0.0
    kurtosis = (1 - 6 * p * (1 - p)) / (objects * p * (1 - p))
    ratio = sum((value - objects) ** 2 for value in values) / variance / len(values)
    shape = 9 * len(values) / (2 + kurtosis)
    return (ratio ** (1 / 3) - (1 - 1 / shape)) * math.sqrt(shape)


def estimates(truth_path, profile_path):
    """
    Lines "MIX size objects_allocated objects_in_use replicates": each replicate is a recursion
    depth of its own, so one recording holds many independent estimates of the same number.
    Prints per size and value: size, value, number of estimates, truth, mean, standard error of
    the mean, chance of a mean as far off, normal_of_spread().
    """
    profile = Profile(profile_path)
    found = collections.defaultdict(lambda: [0] * 4)
    for sample in profile.samples:
        names = stack_names(sample)
        sites = [name for name in names if name.startswith("mix_")]
        if sites:
            key = (int(sites[0][4:]), names.count("replicate"))
            for index, value in enumerate(sample["values"]):
                found[key][index] += value
    with open(truth_path, encoding="utf-8") as lines:
        mixes = [list(map(int, line.split()[1:])) for line in lines if line.startswith("MIX")]
    for size, allocated, in_use, replicates in mixes:
        p = probability(size, profile.period)
        for index, kind in enumerate(TYPES):
            unit = size if kind.endswith("space") else 1
            objects = allocated if kind.startswith("alloc") else in_use
            values = [found[size, r][index] / unit for r in range(1, replicates + 1)]
            mean = sum(values) / replicates
            error = math.sqrt(objects * (1 - p) / p / replicates)
            chance = chance_of_count(round(sum(values) * p), replicates * objects, p)
            spread = normal_of_spread(values, objects, p)
            print(f"{size} {kind} {replicates} {objects} {mean:.2f} {error:.2f} "
                  f"{chance:.1e} {spread:.2f}")


def show(command, profile):
    """The commands that only print."""
    if command == "types":
        for kind, unit in profile.types:
            print(kind, unit)
    elif command == "cum":
        for name, values in sorted(cumulative(profile).items()):
            print(name, *values)
    elif command == "stacks":
        for sample in profile.samples:
            print(*sample["values"], sample["bytes"], ";".join(stack_names(sample)))
    elif command == "sizes":
        sums = collections.defaultdict(lambda: [0] * len(profile.types))
        for sample in profile.samples:
            for index, value in enumerate(sample["values"]):
                sums[sample["bytes"]][index] += value
        for size, values in sorted(sums.items()):
            print(size, *values)
    elif command == "mappings":
        for mapping in profile.mappings.values():
            print(f"{mapping['start']:#x} {mapping['limit']:#x} {mapping['offset']:#x}",
                  mapping["build_id"] or "-", "".join(map(str, mapping["flags"])),
                  mapping["file"])
    elif command == "functions":
        for function in profile.functions.values():
            print(function["start_line"], function["file"] or "-", function["system_name"],
                  function["name"])
    elif command == "lines":
        for location in profile.locations.values():
            for function, line in location.lines:
                print(function["name"], function["file"] or "-", line, function["start_line"])
    elif command == "comments":
        print("\n".join(profile.comments))
    elif command == "facts":
        print("period", profile.period)
        print("time_nanos", profile.time_nanos)
        print("duration_nanos", profile.duration_nanos)
        print("default", profile.default_type)
        print("drop_frames", profile.drop_frames)
        print("samples", len(profile.samples))
    else:
        raise SystemExit(__doc__)


def main(args):
    command = args.pop(0) if args else ""
    if command == "compare":
        only = "--only" in args
        within = args[args.index("--within") + 1] if "--within" in args else None
        return 1 if compare(*args[-2:], only, within) else 0
    if command == "chains":
        return 1 if chains(*args) else 0
    if command == "estimates":
        estimates(*args)
        return 0
    if not args:
        raise SystemExit(__doc__)
    profile = Profile(args[0])
    if command == "valid":
        complaints = list(valid(profile))
        for complaint in complaints[:20]:
            print(f"invalid: {complaint}", file=sys.stderr)
        return 1 if complaints else 0
    if command == "paths":
        return paths(profile)
    if command == "roots":
        roots(profile)
        return 0
    if command == "total":
        column = profile.column(args[1])
        print(sum(sample["values"][column] for sample in profile.samples))
        return 0
    if command == "most":
        print(*most(profile, args[1]))
        return 0
    if command == "part":
        print(*part(profile, args[1], args[2]))
        return 0
    show(command, profile)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
