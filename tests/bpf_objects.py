#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks at what heapbpf has in the kernel.

    bpf_objects.py orphans      programs, maps and links that no living process holds: lines
                                "prog|map|link ID NAME", sorted
    bpf_objects.py settled PID TARGET   exits 0 if the running heapbpf PID follows the process TARGET
                                and knows its mappings as they are
    bpf_objects.py usage PID    of a running heapbpf: kilobytes of memory, descriptors, kilobytes of
                                maps for its own use, kilobytes of maps that hold what is recorded

The kernel drops what nobody holds in its own time, so one look proves nothing: what is listed again
and again stays. Objects of a heapbpf that runs elsewhere on the machine have a holder and are not
listed.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"
NAME_MAX = 15


def names():
    """Names of our programs and maps as the kernel keeps them, from the sources."""
    programs, maps = set(), set()
    for path in glob.glob(f"{ROOT}/bpf/*.bpf.c"):
        text = open(path, encoding="utf-8").read()
        maps.update(re.findall(r"^\} (\w+) SEC\(\"\.maps\"\)", text, re.M))
        programs.update(re.findall(r"^SEC\(\"[a-z][^\"]*\"\)\s+int (?:BPF_\w+\()?(\w+)", text, re.M))
    upload = open(f"{ROOT}/user/unwind_upload.c", encoding="utf-8").read()
    maps.update(re.findall(r"make_array\(\"(\w+)\"", upload))
    if not programs or not maps:
        raise SystemExit("no programs or maps found in the sources")
    return {name[:NAME_MAX] for name in programs}, {name[:NAME_MAX] for name in maps}


def bpftool(*words):
    """What bpftool says as JSON; [] if the object is gone."""
    done = subprocess.run([BPFTOOL, "-j", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []


def inner_maps(number):
    """Ids of the maps in an outer map; they have no descriptor of their own."""
    dump = bpftool("map", "dump", "id", str(number))
    for entry in dump["elements"] if isinstance(dump, dict) else dump:
        if "inner_map_id" in entry:
            yield entry["inner_map_id"]
        else:
            yield sum(int(byte, 16) << 8 * i for i, byte in enumerate(entry["value"]))


def held():
    """Ids that open descriptors name, by kind."""
    ids = {"prog": set(), "map": set(), "link": set()}
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        try:
            text = open(path, encoding="utf-8").read()
        except OSError:
            continue
        for kind, number in re.findall(r"^(prog|map|link)_id:\s*(\d+)$", text, re.M):
            ids[kind].add(int(number))
    return ids


# Maps that grow with what is recorded; the others are tables of ours.
RECORDED = {"stacks", "sites", "live"}


def map_numbers(pid):
    """How many descriptors a process has, and the maps that some of them name."""
    descriptors, numbers = 0, set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            info = open(path, encoding="utf-8").read()
        except OSError:
            continue
        descriptors += 1
        numbers.update(map(int, re.findall(r"^map_id:\s*(\d+)$", info, re.M)))
    return descriptors, numbers


def usage(pid):
    """Resident memory, descriptors and maps of one process, in kilobytes where they are bytes."""
    status = open(f"/proc/{pid}/status", encoding="utf-8").read()
    descriptors, numbers = map_numbers(pid)
    maps = {entry["id"]: entry for entry in bpftool("map", "show")}
    for number in list(numbers):
        if number in maps and maps[number]["type"] == "array_of_maps":
            numbers.update(inner_maps(number))
    sums = {False: 0, True: 0}
    for number in numbers & maps.keys():
        entry = maps[number]
        sums[entry.get("name") in RECORDED] += int(entry["bytes_memlock"])
    resident = re.search(r"^VmRSS:\s*(\d+)", status, re.M)[1]
    print(resident, descriptors, sums[False] // 1024, sums[True] // 1024)


def print_orphans():
    our_programs, our_maps = names()
    # Before the holders: what appears in between would have none.
    programs, maps, links = bpftool("prog", "show"), bpftool("map", "show"), bpftool("link", "show")
    owned = held()
    for program in programs:
        if program["id"] in owned["prog"]:
            owned["map"].update(program.get("map_ids", []))
    orphans = []
    for program in programs:
        if program.get("name") in our_programs and program["id"] not in owned["prog"]:
            orphans.append(("prog", program["id"], program["name"]))
    ours = {program["id"] for program in programs if program.get("name") in our_programs}
    for link in links:
        if link.get("prog_id") in ours and link["id"] not in owned["link"]:
            orphans.append(("link", link["id"], link["type"]))
    for outer in maps:
        if outer["type"] == "array_of_maps" and outer["id"] in owned["map"]:
            owned["map"].update(inner_maps(outer["id"]))
    for entry in maps:
        name = entry.get("name", "")
        if (name in our_maps or name.startswith("heapbpf")) and entry["id"] not in owned["map"]:
            orphans.append(("map", entry["id"], name))
    for orphan in sorted(orphans):
        print(*orphan)


def entry_of(numbers, name, target):
    """What the map of that name, one of `numbers`, has under the number of a process."""
    for entry in bpftool("map", "show"):
        if entry.get("name") == name and entry["id"] in numbers:
            key = map(str, target.to_bytes(4, "little"))
            found = bpftool("map", "lookup", "id", str(entry["id"]), "key", *key)
            return found["formatted"]["value"] if "formatted" in found else None
    return None


def settled(pid, target):
    """True if what was read is of the state that the process is in."""
    _, numbers = map_numbers(pid)
    proc, known = (entry_of(numbers, name, target) for name in ("procs", "uw_procs"))
    return bool(proc and known) and all(proc[i] == known[i] for i in ("epoch", "libraries"))


if sys.argv[1:] == ["orphans"]:
    print_orphans()
elif len(sys.argv) == 4 and sys.argv[1] == "settled":
    sys.exit(0 if settled(*map(int, sys.argv[2:])) else 1)
elif len(sys.argv) == 3 and sys.argv[1] == "usage":
    usage(int(sys.argv[2]))
else:
    raise SystemExit(__doc__)
