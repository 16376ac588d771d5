#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Are the stacks right? gdb's opinion, address by address. A program runs under load while heapbpf
# records every allocation and gdb has a breakpoint a few bytes beside the probe in malloc. At each
# n-th call gdb walks all frames; a sample is equal if heapbpf recorded a stack with the same return
# addresses from the caller of malloc to the end. Where heapbpf marks a stack as cut, its frames must
# be gdb's first ones; such samples have a column of their own, and must be few.
#
#   scripts/gdb-compare.sh [SAMPLES] [PROGRAM...]    default 1000 of redis, sqlite3, postgres, clang
#
# Prints a markdown table; exit 1 if a stack differs, or if there are fewer than 300 samples or 100
# distinct stacks of a program. Differing stacks stay in ./gdb-compare.PROGRAM.
# It takes minutes: gdb needs milliseconds for a stack. As root, after make. Return probes on malloc
# hide its caller from gdb, even those of a recording of another process; such samples do not count.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

samples=1000
if [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
	samples=$1
	shift
fi
programs=("$@")
((${#programs[@]})) || programs=(redis sqlite3 postgres clang)
started_in=$PWD
script_begin

skip() {
	echo "$0: $*" >&2
	exit 77
}

# --- programs: start_NAME leaves it running as target_pid, load_NAME gives it work ----------------

# How many calls pass between two samples, so that they spread over the load.
declare -A every=([redis]=31 [sqlite3]=60 [postgres]=40 [clang]=100)
# Whose malloc it is.
declare -A allocator=([redis]=libjemalloc [sqlite3]=libc.so [postgres]=libc.so [clang]=libc.so)

start_redis() {
	need redis-server redis-cli redis-benchmark
	redis-server --port 0 --unixsocket "$PWD/socket" --save "" --dir "$PWD" >messages &
	target_pid=$!
	pids+=("$target_pid")
	eventually redis-cli -s socket ping >pong
}

load_redis() {
	local script=load.lua i

	cat >"$script" <<-'END'
		local t = {}
		for i = 1, 3 do t[#t + 1] = cjson.encode({name = 'x' .. i, list = {i, i + 1}}) end
		for i = 1, 3 do t[i] = cmsgpack.pack(cjson.decode(t[i])) end
		redis.call('rpush', 'packed', unpack(t))
		redis.pcall('no such command')
		local co = coroutine.wrap(function(n) coroutine.yield(n) return tostring(n) end)
		t[#t + 1] = co(1.5) .. string.format('%5.2f %q', 2.5, 'text')
		for word in string.gmatch('one two three', '%a+') do t[word] = string.upper(word) end
		t[#t + 1] = struct.pack('>I4s', 7, 'abc') .. bit.tohex(255) .. string.gsub('abc', 'b', '%0%0')
		table.sort(t, function(a, b) return tostring(a) < tostring(b) end)
		t.code = loadstring('return function(...) local a, b = ... return a .. b end')
		redis.call('ltrim', 'packed', 0, 100)
		return #string.rep(table.concat(t), 3)
	END
	for ((i = 0; i < 1000; i++)); do
		redis-benchmark -s socket -q -n 5 -c 2 -r 200 \
			-t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset
		redis-cli -s socket --no-raw <<-END
			eval "$(tr '\n' ' ' <"$script")" 0
			xadd stream * field $i other value
			geoadd places 13.3 38.1 a$i 15.1 37.5 b$i
			geosearch places fromlonlat 15 37 byradius 200 km asc
			sort packed by nosort alpha limit 0 10
			setbit bits $((i * 100)) 1
			pfadd counted a$i b$i c$i
			zrangebyscore myzset -inf +inf limit 0 20
			zunionstore united 2 myzset myzset
			sunionstore union myset myset
			config set maxmemory-policy allkeys-lru
			config get *max*
			client list
			info
			acl setuser u$i on >secret ~key* +get
			acl list
			object encoding myhash
			dump myhash
			copy mylist list$i
			memory usage mylist
			function load replace "#!lua name=l$((i % 10))
			xreadgroup group g c count 1 streams stream >
			xrange stream - + count 5
			xgroup create stream g$i 0
			slowlog get 5
			command docs get
			multi
			incr n
			append s$i abc
			exec
			subscribe
			hscan myhash 0
			sadd numbers 1 2 3 $i
			sadd numbers words
			sdiffstore rest numbers myset
			srandmember numbers 5
			hset fields f$i $i g$i $(printf 'v%.0s' {1..100})
			hincrbyfloat fields f$i 1.5
			hrandfield fields 3 withvalues
			hgetall fields
			zadd scores 1 a$i 2 b$i 3 $(printf 'm%.0s' {1..100})
			zrangestore ranged scores 0 -1
			zdiff 2 scores ranged withscores
			zinter 2 scores ranged weights 1 2
			zrangebylex scores [a [c
			zrandmember scores 3 withscores
			zpopmax scores 2
			setrange s$i 20 xyz
			getex s$i ex 100
			lcs s$i s$i idx
			bitop not inverted bits
			pfmerge counted2 counted
			pfcount counted counted2
			lmpop 1 mylist left count 2
			linsert mylist before x y
			rpush large$i $(printf 'e%d ' {1..150})
			lset large$i 3 $(printf 'l%.0s' {1..200})
			xautoclaim stream g c 0 0 count 5
			xinfo stream stream full
			xtrim stream maxlen 10
			script load "return redis.sha1hex('$i')"
			evalsha 0000000000000000000000000000000000000000 0
			fcall none 0
			client setname client$i
			client tracking on bcast prefix p
			client kill id 1
			latency histogram
			memory stats
			memory doctor
			object help
			keys s*
			scan 0 match *s* count 20
			rename s$i renamed$i
			expire renamed$i 100
			unlink renamed$i large$i
			psetex short$i 1 v
			publish news text$i
			watch n
			acl getuser u$i
			acl genpass
			lolwut
			config set notify-keyspace-events KEA
			config set save ""
			debug object myhash
			lpos mylist x
			bitfield bits incrby u8 0 1
			restore
			debug sleep 0
			flushall
		END
	done >load.out 2>&1
}

start_sqlite3() {
	need sqlite3
	target_spawn stdbuf -oL sqlite3 :memory:
	printf "select 'READY';\n" >&"$target_in"
	target_await READY >/dev/null
}

load_sqlite3() {
	local i

	for ((i = 0; i < 2000; i++)); do
		cat <<-END
			create table t$i(id integer primary key, name text unique, body blob, n real);
			with recursive n(i) as (select 1 union all select i + 1 from n where i < 30)
			insert into t$i select i, 'name ' || i, zeroblob(i % 300), i / 7.0 from n;
			create index i$i on t$i(name, n);
			create view v$i as select name, sum(n) over (order by id) s from t$i;
			create trigger g$i after update on t$i begin delete from t$i where id = new.id + 1; end;
			select a.name, group_concat(b.name), count(distinct b.n) from t$i a join t$i b using (n)
				group by a.name having count(*) > 0 order by 2 desc limit 3;
			select json_group_array(json_object('k', name, 'v', s)) from v$i;
			select printf('%s %08.3f', name, n), hex(body), replace(name, 'a', 'bc'), upper(name)
				from t$i where name like 'na%1' or name glob '*2' union select 1, 2, 3, 4;
			update t$i set name = name || 'x' where id in (select id from t$i where n > 2);
			alter table t$i add column extra default 'y';
			select date('now'), strftime('%Y-%m', 'now', '+1 month'), quote(x'0102');
			explain query plan select * from t$i where name = 'x' and n > 1;
			analyze; pragma table_info(t$i); pragma integrity_check;
			savepoint s; delete from t$i where id > 10; rollback to s; release s;
			drop view v$i; drop table t$i; vacuum;
		END
	done >&"$target_in"
}

start_postgres() {
	postgres_make
	target_spawn setpriv --reuid=postgres --regid=postgres --init-groups \
		"$postgres_bin/postgres" --single -j -D "$PWD/db/data" postgres
	# It answers one statement with its result: then it is ready.
	printf "select 'READY' as ready;\n\n" >&"$target_in"
	await_text READY
}

# Reads what the target says until it has said TEXT.
await_text() {
	local line

	while IFS= read -r -t "$PATIENCE" -u "$target_out" line; do
		[[ $line == *"$1"* ]] && return
	done
	fail "the target never said $1"
}

load_postgres() {
	local i

	for ((i = 0; i < 500; i++)); do
		cat <<-END
			create table t$i(id int primary key, name text, body jsonb, tags text[]);

			insert into t$i select i, 'name ' || i, jsonb_build_object('k', i, 'l', array[i, i + 1]),
				array['a' || i, 'b'] from generate_series(1, 300) i;

			create index on t$i using gin(body);

			create index on t$i(lower(name));

			analyze t$i;

			select a.name, count(*), string_agg(b.name, ',' order by b.id) from t$i a
				join t$i b on a.id % 10 = b.id % 10 group by a.name order by 2 desc, 1 limit 3;

			select * from (select id, sum(id) over (partition by id % 7 order by id) s,
				rank() over (order by name) r from t$i) x where s > 100 order by r limit 5;

			select regexp_replace(name, '([0-9]+)', '<\1>'), body @> '{"k": 3}', tags && array['a7'],
				to_char(now(), 'YYYY'), xmlelement(name x, name) from t$i where name ~ '1\$';

			create function f$i(n int) returns int language plpgsql as \$\$
				declare s int := 0; begin for i in 1..n loop s := s + i; end loop;
				execute 'select ' || s into s; return s; end \$\$;

			select f$i(100), f$i(10);

			with recursive r(n) as (select 1 union all select n + 1 from r where n < 50)
				update t$i set name = name || n from r where r.n = t$i.id;

			explain analyze select * from t$i where id in (select id from t$i where body ? 'k');

			create view v$i as select name, body ->> 'k' from t$i;

			alter table t$i add column extra numeric default 1.5;

			do \$\$ begin perform 1 / 0; exception when others then null; end \$\$;

			drop view v$i;

			drop function f$i(int);

			drop table t$i;

		END
	done >&"$target_in"
}

# It waits for its source, which comes through the pipe.
start_clang() {
	need clang++
	mkfifo source.cc
	clang++ -std=c++17 -O1 -c -o out.o source.cc >messages 2>&1 &
	target_pid=$!
	pids+=("$target_pid")
	eventually grep -q libLLVM "/proc/$target_pid/maps"
}

load_clang() {
	local i

	{
		cat <<-'END'
			#include <algorithm>
			#include <map>
			#include <string>
			#include <vector>
		END
		for ((i = 0; i < 40; i++)); do
			cat <<-END
				template <int N> struct S$i { std::map<std::string, std::vector<int>> m;
					int f(int n) { for (auto &p : m) std::sort(p.second.begin(), p.second.end(),
						[n](int a, int b) { return a * n < b * N; }); return m.size(); } };
				int g$i(int n) { try { return S$i<$i>().f(n) + S$i<$i + 1>().f(n); }
					catch (const std::string &s) { return s.size(); } }
			END
		done
	} >source.cc
}

# --- one program ----------------------------------------------------------------------------------

# The address of an instruction of malloc that each call executes, and that is not the probed one:
# the first one, or if that is probed the next.
place_of_breakpoint() {
	local path vma delta offset start range

	read -r path vma delta < <("$HEAPBPF" check -p "$target_pid" | awk -v lib="$1" '
		$1 ~ /^\// { path = $1 }
		$1 == "malloc" && index(path, lib) { print path, $2, $3 }')
	[[ $path ]] || fail "no malloc in $1"
	offset=0
	if ((delta == 0)); then
		offset=$(objdump -d --start-address="$vma" --stop-address=$((vma + 32)) "$path" |
			awk '$1 ~ /^[0-9a-f]+:$/ && ++n == 2 { sub(":", "", $1); print "0x" $1 }')
		offset=$((offset - vma))
	fi
	# The mapping that begins with the file's first byte is where its addresses count from.
	range=$(awk -v path="$path" '$6 == path && $3 == "00000000" { print $1; exit }' \
		"/proc/$target_pid/maps")
	start=$((16#${range%-*}))
	printf '%x\n' $((start + vma + offset))
}

# Nobody else reads what the target answers.
drain() {
	if ((target_out)); then
		cat <&"$target_out" >/dev/null &
		pids+=($!)
	fi
}

# measure NAME: one row of the table.
measure() {
	local name=$1 gdb_pid load_pid

	need gdb objdump
	mkdir "$test_dir/$name"
	cd "$test_dir/$name"
	target_in=0 target_out=0
	"start_$name"
	mkfifo ready
	STACKS_AT=$(place_of_breakpoint "${allocator[$name]}") STACKS_EVERY=${every[$name]} \
		STACKS_COUNT=$samples STACKS_OUT=stacks.gdb STACKS_READY=ready \
		gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set auto-load safe-path /' \
		-p "$target_pid" -x "$TESTS/gdb_stacks.py" >gdb.out 2>&1 </dev/null &
	gdb_pid=$!
	pids+=("$gdb_pid")
	# Entries only: with return probes gdb would lose its way.
	heapbpf_start -q --top 0 -p "$target_pid" -r 1 -t allocs --max-stacks 400000 --max-depth 512 --text \
		-o profile.txt
	timeout 300 head -n 1 ready >/dev/null || fail "gdb: $(<gdb.out)"
	drain
	"load_$name" 2>/dev/null &
	load_pid=$!
	pids+=("$load_pid")
	wait "$gdb_pid" || fail "gdb: $(<gdb.out)"
	kill "$load_pid" 2>/dev/null || true
	kill -INT "$heapbpf_pid" 2>/dev/null || true
	heapbpf_wait
	kill -KILL "$target_pid" 2>/dev/null || true
	wait "$target_pid" 2>/dev/null || true
	whole
	/usr/bin/python3 "$TESTS/gdb_compare.py" "$name" profile.txt stacks.gdb \
		"$started_in/gdb-compare.$name" || failures=1
}

failures=0
printf '| program | stacks of heapbpf | samples of gdb | distinct | equal | equal up to the limit | cut, equal so far | different | deepest |\n'
printf '|---|---|---|---|---|---|---|---|---|\n'
for program in "${programs[@]}"; do
	[[ ${every[$program]:-} ]] || fail "no such program: $program"
	measure "$program"
done
((failures == 0))
