#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Allocators other than the C library's, at -r 1 exact as that is; and what throws lives on.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# find_library NAME: the path of an allocator goes to `library`, empty for the C library's own.
library=
find_library() {
	local path

	library=
	case $1 in
	glibc) return ;;
	jemalloc) path=libjemalloc.so.2 ;;
	tcmalloc) path=libtcmalloc_minimal.so.4 ;;
	mimalloc) path=libmimalloc.so.2 ;;
	esac
	library=$(ldconfig -p | sed -n "s|.*$path .* => ||p" | head -n 1)
	[[ -n $library ]] || skip "$path is not installed"
}

# with NAME TARGET [ARG...]: starts the target with that allocator.
with() {
	find_library "$1"
	target_exec env LD_PRELOAD="$library" "$TARGETS/$2" "${@:3}"
}

# check TIER ALLOCATOR TARGET [ARG...]: at -r 1, with $options.
options=()
check() {
	need_tier "$1"
	with "${@:2}"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier "$1" "${options[@]}"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

# cxx TIER ALLOCATOR: every form of operator new and delete. Debian's mimalloc is written in C and
# cannot throw.
cxx() {
	if [[ $2 == mimalloc ]]; then
		check "$@" family_cxx calm
	else
		check "$@" family_cxx
	fi
}

cxx_allocs() {
	options=(-t allocs)
	cxx "$@"
	! grep -q inuse <(reader types p.pb.gz) || fail "there is more than allocs"
}

# bad_alloc ALLOCATOR TIER RATE: large objects are all sampled at the default rate, too.
bad_alloc() {
	need_tier "$2"
	# It must do that without us.
	find_library "$1"
	LD_PRELOAD=$library "$TARGETS/bad_alloc" <<<gg >/dev/null 2>&1 ||
		skip "operator new of this $1 does not throw"
	with "$1" bad_alloc
	heapbpf_start -p "$target_pid" -r "$3" --max-overhead none -o p.pb.gz --tier "$2"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

for tier in session multi perf; do
	for name in jemalloc tcmalloc mimalloc; do
		eval "test_cxx_${name}_$tier() { cxx $tier $name; }"
		eval "test_bad_alloc_${name}_$tier() { bad_alloc $name $tier 1; }"
		eval "test_bad_alloc_${name}_${tier}_sampled() { bad_alloc $name $tier 512K; }"
	done
	eval "test_bad_alloc_glibc_$tier() { bad_alloc glibc $tier 1; }"
	eval "test_family_x_$tier() { check $tier jemalloc family_x; }"
done

for name in jemalloc tcmalloc mimalloc; do
	eval "test_cxx_${name}_allocs() { cxx_allocs session $name; }"
	eval "test_threads_$name() { check session $name threads; }"
done

for name in tcmalloc mimalloc; do
	for tier in session multi perf; do
		eval "test_prefix_${name}_$tier() { check $tier $name family_prefix; }"
	done
	eval "test_prefix_${name}_allocs() { options=(-t allocs); check session $name family_prefix; }"
done

test_bad_alloc_glibc_sampled() {
	bad_alloc glibc session 512K
}

# Each stops at the breakpoints of the other; neither's return addresses may be replaced for that.
bad_alloc_two_at_once() {
	local first first_in first_out first_heapbpf

	need_tier "$2"
	with "$1" bad_alloc
	first=$target_pid first_in=$target_in first_out=$target_out
	with "$1" bad_alloc
	heapbpf_start -p "$first" -r 1 -o first.pb.gz --tier "$2"
	first_heapbpf=$heapbpf_pid
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier session
	target_step
	mv truth truth.second
	target_in=$first_in target_out=$first_out target_step
	heapbpf_stop
	whole
	target_end
	target_pid=$first target_in=$first_in heapbpf_pid=$first_heapbpf
	heapbpf_stop
	whole
	target_end
	reader compare truth first.pb.gz
	reader compare truth.second p.pb.gz
}

for name in jemalloc tcmalloc; do
	for tier in session multi perf; do
		eval "test_bad_alloc_two_at_once_${name}_$tier() { bad_alloc_two_at_once $name $tier; }"
	done
done

test_family_x_allocs() {
	options=(-t allocs)
	check session jemalloc family_x
}

test_own_prefix() {
	options=(--symbol-prefix "other_,mine_")
	check session glibc own_prefix
	options=(--symbol-prefix other_ --symbol-prefix mine_)
	check session glibc own_prefix
}

# Without the option its names mean nothing, and the rest is as it was.
test_own_prefix_unknown() {
	record own_prefix
	sed -i 's/^SITE site_mine .*/SITE site_mine 0 0 0 0/' truth
	exact
	target_end
}

# The libraries' operator new stays without a return probe; what its end costs is said.
test_check_shows_where_results_are_taken() {
	with jemalloc family_cxx
	heapbpf_run check -p "$target_pid"
	says '^    _Znwm .* ja .*emulated$' cat out
	says '^    _Znam .* not probed: it jumps to operator new$' cat out
	says '^    _ZnwmSt11align_val_t .* not probed: it calls one that is$' cat out
	says '^    mallocx .*emulated$' cat out
	says '^    return of new .* ret .* single-stepped \(slow\)$' cat out
	heapbpf_run check -t allocs -p "$target_pid"
	! grep -q 'return of new' out || fail "results are not needed for allocs"
}

# What cannot be followed to its end is counted and said to be missing from what is in use.
test_end_unknown() {
	target own_new
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	exact
	says '^lost: 10 no_result' cat out
	heapbpf_run check -p "$target_pid"
	says '^    _Znwm .*, not in inuse: its returns cannot be found$' cat out
	target_end
}

test_end_unknown_allocs() {
	options=(-t allocs)
	check session glibc own_new
}

e2e_main "$@"
