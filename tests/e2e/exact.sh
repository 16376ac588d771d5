#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# At -r 1 the profile is what the target counted, site by site, whichever way the probes are
# attached and whichever sample types are asked for.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# check TIER TARGET [COMPARE-OPTION...]
check() {
	local tier=$1 name=$2

	shift 2
	need_tier "$tier"
	record "$name" --tier "$tier"
	exact_if "$@"
	target_end
}

# check_allocs TIER TARGET: half the probes, half the types.
check_allocs() {
	need_tier "$1"
	record "$2" --tier "$1" -t allocs
	equal "$(reader types p.pb.gz | tr '\n' ,)" "alloc_objects count,alloc_space bytes,"
	exact
	target_end
}

for tier in session multi perf; do
	for name in family family_cxx plain large threads freeall chain sandboxed; do
		eval "test_${name}_$tier() { check $tier $name; }"
		eval "test_${name}_${tier}_allocs() { check_allocs $tier $name; }"
	done
done

# check_musl TIER FLAG...: of musl, linked with FLAG.
check_musl() {
	need musl-gcc
	need_tier "$1"
	musl-gcc -O2 -g -fomit-frame-pointer -fno-builtin "${@:2}" -o plain "$TESTS/targets/plain.c"
	target_exec ./plain
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier "$1"
	target_step
	heapbpf_stop
	whole
	says '^SITE site_posix_memalign 500 50000 500 50000$' cat truth
	says '^SITE site_calloc 500 50000 250 25000$' cat truth
	exact_if --only
	target_end
}

for tier in session multi perf; do
	eval "test_musl_$tier() { check_musl $tier; }"
	eval "test_musl_static_$tier() { check_musl $tier -static; }"
done

# A heapbpf that is under seccomp, too, as it would be in a container.
test_sandboxed_both() {
	printf '#!/bin/sh\nexec "%s" fchown 1000000 EPERM "%s" "$@"\n' "$TARGETS/fault_syscall" \
		"$HEAPBPF" >filtered
	chmod +x filtered
	HEAPBPF=$PWD/filtered
	record sandboxed
	exact
	target_end
}

# Nothing but what the program did is in its profile.
test_nothing_else() {
	record freeall
	exact_if --only
	record family
	exact_if --only
}

test_inuse_alone() {
	record family -t inuse
	equal "$(reader types p.pb.gz | tr '\n' ,)" "inuse_objects count,inuse_space bytes,"
	exact
}

# The profile of a program that freed everything says so, in each selection of types.
test_all_freed() {
	local type

	for type in heap inuse; do
		record freeall -t "$type"
		equal "$(reader total p.pb.gz inuse_objects)" 0 "objects in use, -t $type"
		equal "$(reader total p.pb.gz inuse_space)" 0 "bytes in use, -t $type"
		exact
		target_end
	done
	record freeall -t inuse
	equal "$(reader stacks p.pb.gz)" "" "samples of nothing"
}

test_list_of_types() {
	mkdir prof
	target freeall
	heapbpf_start -p "$target_pid" -r 1 -t heap,allocs,inuse -o prof/
	target_step
	heapbpf_stop
	whole
	for type in heap allocs inuse; do
		mv "prof/heapbpf.freeall.$target_pid.$type.pb.gz" p.pb.gz
		exact
	done
	equal "$(ls prof)" "" "other files"
}

test_several_processes() {
	local first first_in first_out

	target family
	first=$target_pid first_in=$target_in first_out=$target_out
	target freeall
	mkdir prof
	heapbpf_start -p "$first,$target_pid" -r 1 -o prof/
	target_step
	mv truth truth.freeall
	target_in=$first_in target_out=$first_out
	target_step
	heapbpf_stop
	whole
	mv "prof/heapbpf.family.$first.pb.gz" p.pb.gz
	exact_if --only
	mv truth.freeall truth
	mv "prof/heapbpf.freeall.$target_pid.pb.gz" p.pb.gz
	exact_if --only
}

# Two recordings of one process at once do not disturb each other.
test_two_at_once() {
	local first

	target family
	heapbpf_start -p "$target_pid" -r 1 -o first.pb.gz
	first=$heapbpf_pid
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	heapbpf_pid=$first
	heapbpf_stop
	whole
	exact
	mv first.pb.gz p.pb.gz
	exact
}

# Attached half way: what was there before is invisible, and its end changes nothing.
test_attached_late() {
	steady
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	steady_end
	heapbpf_wait
	whole
	reader valid p.pb.gz
	says '^steady_alloc ' reader cum p.pb.gz
}

e2e_main "$@"
