#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Real programs under load, neither prepared nor restarted: their answers stay right, their stacks
# complete, their profiles say something.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Where threads begin.
roots='entry|_start|clone|clone3|__clone3'

# top TYPE REGEX [PROFILE]: the stack that has the most of TYPE, whatever the sizes, matches.
top() {
	local value stack profile=${3:-p.pb.gz}

	reader valid "$profile"
	read -r value stack < <(reader most "$profile" "$1")
	((value > 0)) || fail "no $1"
	matches "$stack" "$2" "stack with most of $1"
}

# site TYPE REGEX PERCENT BYTES [PROFILE]: the stack with most of TYPE matches; all that match have at
# least that share of everything, and that much, which the test knows from the work that it gave.
site() {
	local found all profile=${5:-p.pb.gz}

	top "$1" "$2" "$profile"
	read -r found all < <(reader part "$profile" "$1" "$2")
	((found * 100 >= all * $3)) || fail "$found of $all bytes $1 are no $3 percent: $2"
	((found >= $4)) || fail "$found bytes $1 are less than $4: $2"
}

# Of a thousand stacks.
complete_min=999

# plausible TYPE REGEX [PROFILE]: so it is, and $complete_min of a thousand samples have a stack that was
# walked to where its thread began.
plausible() {
	local complete all profile=${3:-p.pb.gz}

	top "$@"
	read -r complete _ all _ < <(reader comments "$profile" | grep 'stacks complete$')
	((all > 100)) || fail "$all samples are no sample"
	((complete * 1000 >= all * complete_min)) || fail "$complete of $all stacks are complete"
	reader roots "$profile" >ends
	awk -v min="$complete_min" -v roots="^($roots)\$" '
		$2 ~ roots { good += $1 }
		{ all += $1 }
		END { exit good * 1000 < all * min }' ends || fail "roots: $(<ends)"
}

# same_answer COMMAND...: a target says the same alone and watched; its profile is in p.pb.gz.
same_answer() {
	target_exec "$@"
	target_step
	mv truth alone
	target_end
	target_exec "$@"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	cmp alone truth || fail "its answer is another one when it is watched"
	target_end
}

test_sqlite3() {
	local answer

	need sqlite3
	target_spawn stdbuf -oL sqlite3 data.db
	printf "select 'READY';\n" >&"$target_in"
	target_await READY
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	cat >&"$target_in" <<-'END'
		create table t(id integer primary key, name text, body blob);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
		insert into t select i, 'name ' || i, zeroblob(i % 300) from n;
		create index by_name on t(name);
		select count(*), sum(length(body)), max(name) from t;
		select 'DONE';
	END
	answer=$(target_await DONE)
	heapbpf_stop
	whole
	equal "$answer" "20000|2980200|name 9999" "answer of sqlite3"
	plausible alloc_space 'sqlite3_step'
	plausible inuse_space 'sqlite3_'
}

rss=0

# Resident bytes of the target.
resident() {
	awk '$1 == "VmRSS:" { print $2 * 1024 }' "/proc/$target_pid/status"
}

# python OBJECTS [ENVIRONMENT...]: makes that many, keeps them, and tells how much is in them. Each has
# an array of 100,000 bytes and one more, which no allocator of python's own has room for.
python() {
	local objects=$1

	shift
	target_exec env "$@" /usr/bin/python3 -c '
import sys
print("READY", flush=True)
sys.stdin.read(1)
kept = [{"list": list(range(1000, 1100)), "bytes": bytearray(100000)}
        for i in range(int(sys.argv[1]))]
print(sum(len(k["list"]) + len(k["bytes"]) for k in kept))
print("DONE", flush=True)
sys.stdin.read(1)
' "$objects"
	rss=$(resident)
	heapbpf_start --max-overhead none -p "$target_pid" -r 8K -o p.pb.gz
	target_go
	equal "$(target_await DONE)" $((objects * 100100)) "answer of python"
	heapbpf_stop
	whole
	plausible inuse_space '^([^;]+;)?PyByteArray_Resize;'
	# An estimate; the chance to miss one of them is 1 in 200,000.
	site inuse_space '^([^;]+;)?PyByteArray_Resize;' 90 $((objects * 99900))
}

test_python3() {
	python 1000
	target_end
}

# Every object is a block of its own now, and all of them are seen.
test_python3_with_malloc() {
	local seen

	python 1000 PYTHONMALLOC=malloc
	seen=$(reader total p.pb.gz inuse_space)
	rss=$(($(resident) - rss))
	((seen > rss / 2 && seen < rss * 3 / 2)) || fail "$seen bytes seen, $rss more resident"
	target_end
}

# ask SOCKET COUNT: so many requests by four clients; the answers go to standard output, in order.
ask() {
	/usr/bin/python3 - "$@" <<-'END'
		import concurrent.futures
		import socket
		import sys

		def ask(number):
		    with socket.socket(socket.AF_UNIX) as link:
		        link.connect(sys.argv[1])
		        link.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % number)
		        answer = b""
		        while chunk := link.recv(65536):
		            answer += chunk
		    return answer.partition(b"\r\n\r\n")[2].decode()

		with concurrent.futures.ThreadPoolExecutor(4) as clients:
		    print(*clients.map(ask, range(int(sys.argv[2]))), sep="\n")
	END
}

# Leaves the pids of both workers in the file `workers`.
nginx_works() {
	pgrep -P "$1" >workers && (($(lines workers) == 2)) && test -S socket
}

test_nginx_workers() {
	local master

	need nginx
	cat >nginx.conf <<-END
		daemon off;
		user root;
		worker_processes 2;
		error_log $test_dir/error.log;
		pid $test_dir/nginx.pid;
		events { worker_connections 64; }
		http {
			access_log off;
			client_body_temp_path $test_dir/t1; proxy_temp_path $test_dir/t2;
			fastcgi_temp_path $test_dir/t3; uwsgi_temp_path $test_dir/t4;
			scgi_temp_path $test_dir/t5;
			server { listen unix:$test_dir/socket; location / { return 200 "fine \$uri"; } }
		}
	END
	nginx -c "$test_dir/nginx.conf" -p "$test_dir" -e "$test_dir/error.log" 2>messages &
	master=$!
	pids+=("$master")
	eventually nginx_works "$master"
	mapfile -t -O "${#pids[@]}" pids <workers
	mkdir profiles
	ask socket 2000 >alone
	heapbpf_start -p "$(paste -sd, workers)" -r 1 -o profiles/
	ask socket 2000 >watched
	heapbpf_stop
	whole
	cmp alone watched
	equal "$(sed -n 2000p watched)" "fine /1999" "answer of nginx"
	for profile in profiles/*; do
		plausible alloc_space 'ngx_memalign;.*ngx_process_events_and_timers;.*;main;' "$profile"
		reader total "$profile" alloc_objects
	done >objects
	equal "$(lines objects)" 2 "profiles"
	# A connection, a request, and memory for each.
	(($(paste -sd+ objects) >= 6000)) || fail "objects: $(<objects)"
	kill "$master"
	wait "$master" || true
}

# digest SOCKET: of all that the redis there has.
digest() {
	redis-cli -s "$1" debug digest
}

# What redis says of its last child.
redis_saved() {
	redis-cli -s socket info persistence >state
	grep -q 'rdb_bgsave_in_progress:0' state && grep -q 'rdb_saves:1' state
}

# redis NAME [OPTION...]: starts it with its socket NAME, in this directory.
redis() {
	redis-server --port 0 --unixsocket "$test_dir/$1" --save "" --dir "$test_dir" \
		--enable-debug-command yes "${@:2}" >"messages.$1" &
	pids+=($!)
	eventually redis-cli -s "$1" ping >answer
}

# The child that writes the file of its data has the probes' breakpoints, and no probes.
test_redis() {
	need redis-server redis-cli redis-benchmark
	redis socket
	heapbpf_start -p "${pids[-1]}" -r 1 -o p.pb.gz
	redis-benchmark -s socket -q -n 2000 -c 20 -r 500 -t set,lpush,lrange_100,hset,zadd >bench
	redis-benchmark -s socket -q -n 500 -d 10000 -c 20 -r 50 -t set >bench
	redis-cli -s socket eval 'local t = {} for i = 1, 2000 do t[i] = "x" .. i end
		redis.call("rpush", "list", unpack(t)) return redis.call("llen", "list")' 0 >answer
	redis-cli -s socket bgsave >saving
	redis-benchmark -s socket -q -n 200 -c 20 -t get >bench
	eventually redis_saved
	heapbpf_stop
	whole
	equal "$(<answer)" 2000 "answer of redis"
	grep -q 'rdb_last_bgsave_status:ok' state || fail "$(<state)"
	plausible alloc_space '(createStringObject|readQueryFromClient);.*aeMain;main;'
	plausible inuse_space 'createStringObject;.*processInputBuffer;readQueryFromClient;.*aeMain;main;'
	redis second --dbfilename dump.rdb
	equal "$(digest second)" "$(digest socket)" "what was saved"
	redis-cli -s second shutdown nosave || true
	redis-cli -s socket shutdown nosave || true
}

test_mariadb() {
	local sql=(mariadb --no-defaults -S "$test_dir/socket" -u root -N -B) server options

	need mariadbd mariadb mariadb-install-db
	options=(--no-defaults --user=root --datadir="$test_dir/db" --innodb-buffer-pool-size=16M)
	mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal \
		--skip-test-db >messages 2>&1
	mariadbd "${options[@]}" --socket="$test_dir/socket" --skip-networking --pid-file=pid \
		>>messages 2>&1 &
	server=$!
	pids+=("$server")
	eventually "${sql[@]}" -e 'select 1' >/dev/null
	heapbpf_start -p "$server" -r 1 -o p.pb.gz
	"${sql[@]}" >answer <<-'END'
		create database d;
		use d;
		create table t(id int primary key, name varchar(40), body blob) engine=innodb;
		insert into t select seq, concat('name ', seq), repeat('x', seq % 300) from seq_1_to_5000;
		create index by_name on t(name);
		select count(*), sum(length(body)), max(name) from t;
		select a.id from t a join t b on a.id = b.id order by b.name desc limit 1;
	END
	heapbpf_stop
	whole
	equal "$(tr '\t\n' '  ' <answer)" "5000 737700 name 999 999 " "answer of mariadb"
	plausible alloc_space 'handler::ha_rnd_next.*;rr_sequential.*;JOIN::exec.*mysql_execute_command'
	kill "$server"
	wait "$server" || true
}

# Leaves the pids of the processes that serve pgbench in the file `backends`, when there are four.
backends_of_pgbench() {
	as_postgres psql -qAtc "select pid from pg_stat_activity where application_name = 'pgbench'
		and query ~ '^(BEGIN|END|UPDATE|INSERT|select sum)' and state is not null" >backends
	(($(lines backends) == 4))
}

test_postgres_backends() {
	local profile bench

	postgres_serve
	echo "select sum(length(repeat('x', 100000 + i))) from generate_series(1, 100) i;" >texts.sql
	exec_as_postgres pgbench -c 4 -j 2 -T 300 -b tpcb-like -f texts.sql >bench 2>&1 &
	bench=$!
	pids+=("$bench")
	eventually backends_of_pgbench
	mkdir profiles
	heapbpf_run --max-overhead none -p "$(paste -sd, backends)" -d 1s -r 64K -o profiles/
	whole
	equal "$(find profiles -type f | wc -l)" 4 "profiles"
	for profile in profiles/*; do
		plausible alloc_space '^([^;]+;){0,2}palloc;repeat;.*;PostgresMain;.*;PostmasterMain;' "$profile"
		site alloc_space '^([^;]+;){0,2}palloc;repeat;' 80 $((50 * 100000)) "$profile"
	done
	kill -0 "$bench" || fail "pgbench did not go on: $(<bench)"
	as_postgres psql -qAtc "select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'pgbench'" >/dev/null
	wait "$bench" || true
	# Each transaction is in all four tables, or in none.
	as_postgres psql -qAt >sums <<-'END'
		select sum(delta) from pgbench_history;
		select sum(abalance) from pgbench_accounts;
		select sum(tbalance) from pgbench_tellers;
		select sum(bbalance) from pgbench_branches;
	END
	equal "$(sort -u sums | wc -l)" 1 "different sums"
	kill -INT "$(head -n 1 db/data/postmaster.pid)"
}

# questions: what the name server is asked.
questions() {
	local i

	for i in {1..500}; do
		echo "host$i.example TXT"
	done
	echo "example AXFR"
	echo "nobody.example A"
}

# Debian's has the functions of jemalloc that are no malloc.
test_named() {
	local port server i

	need named dig
	port=$(/usr/bin/python3 -c 'import socket
link = socket.socket()
link.bind(("127.0.0.1", 0))
print(link.getsockname()[1])')
	cat >named.conf <<-END
		options {
			directory "$test_dir";
			pid-file none;
			session-keyfile "$test_dir/session.key";
			listen-on port $port { 127.0.0.1; };
			listen-on-v6 { none; };
			recursion no;
			dnssec-validation no;
			allow-transfer { any; };
		};
		controls { };
		zone "example" { type primary; file "$test_dir/zone"; };
	END
	{
		printf '%s\n' "\$TTL 60" '@ IN SOA ns root 1 60 60 60 60' '@ IN NS ns' 'ns IN A 127.0.0.1'
		for i in {1..2000}; do
			echo "host$i IN TXT \"text of $i\""
		done
	} >zone
	questions >asked
	named -g -n 2 -c named.conf >messages 2>&1 &
	server=$!
	pids+=("$server")
	eventually grep -q 'running$' messages
	dig @127.0.0.1 -p "$port" +noall +answer -f asked >alone
	heapbpf_start -p "$server" -r 1 -o p.pb.gz
	dig @127.0.0.1 -p "$port" +noall +answer -f asked >watched
	heapbpf_stop
	whole
	cmp alone watched
	equal "$(grep -c 'TXT.*"text of' watched)" 2500 "answers"
	"$HEAPBPF" check -p "$server" >out
	if ldd "$(command -v named)" | grep -q jemalloc; then
		says '^    mallocx .*emulated$' cat out
	fi
	plausible alloc_space 'isc__mem(pool)?_get;.*;(isc__)?trampoline_run;|isc__mem(pool)?_get;.*uv_run'
	kill "$server"
	wait "$server" || true
}

# Debian's has tcmalloc.
test_swipl() {
	need swipl
	cat >queens.pl <<-'END'
		:- initialization(main, main).
		:- dynamic fact/3.
		await(Word) :- format("~w~n", [Word]), flush_output, get_char(_).
		queens(N, Qs) :- numlist(1, N, Ns), permutation(Ns, Qs), safe(Qs).
		safe([]).
		safe([Q|Qs]) :- no_attack(Q, Qs, 1), safe(Qs).
		no_attack(_, [], _).
		no_attack(Q, [R|Qs], D) :- Q =\= R + D, Q =\= R - D, E is D + 1, no_attack(Q, Qs, E).
		remember(I) :- atom_concat(name_, I, A), X is I * I, assertz(fact(I, A, X)).
		:- dynamic long/1.
		write_long(I) :- format(atom(A), "~|~`0t~d~100000|", [I]), assertz(long(A)).
		main :-
			await('READY'),
			forall(between(1, 20000, I), remember(I)),
			forall(between(1, 500, I), write_long(I)),
			aggregate_all(sum(X), fact(_, _, X), Sum),
			findall(Qs, queens(6, Qs), All),
			fact(777, Name, _),
			format("~w ~w ~w~n", [Sum, All, Name]),
			await('DONE').
	END
	same_answer swipl queens.pl
	equal "$(<truth)" \
		"2666866670000 [[2,4,6,1,3,5],[3,6,2,5,1,4],[4,1,5,2,6,3],[5,3,1,6,4,2]] name_777" \
		"answer of swipl"
	# Text that is written into an atom, and its zero.
	plausible inuse_space '^PL_malloc_atomic;.*;PL_unify_wchars_diff;'
	site inuse_space '^PL_malloc_atomic;.*;PL_unify_wchars_diff;' 80 $((500 * 100001))
	# A clause and an atom for each.
	(($(reader total p.pb.gz inuse_objects) >= 40000))
}

test_node() {
	need node
	cat >server.js <<-'END'
		'use strict';
		const crypto = require('crypto');
		const fs = require('fs');
		const http = require('http');
		const zlib = require('zlib');
		const byte = Buffer.alloc(1);
		const hash = crypto.createHash('sha256');
		const socket = fs.mkdtempSync('/tmp/heapbpf-node.') + '/socket';

		function wait(word) {
			fs.writeSync(1, word + '\n');
			if (fs.readSync(0, byte, 0, 1) !== 1)
				process.exit(4);
		}

		function respond(request, response) {
			const body = Buffer.alloc(2000000, request.url);
			response.end(JSON.stringify({url: request.url, sum: crypto.createHash('md5').update(body).digest('hex'),
				packed: zlib.deflateSync(body).length}));
		}

		const server = http.createServer(respond);

		function end() {
			server.close();
			fs.rmSync(socket.replace(/.socket$/, ''), {recursive: true, force: true});
			fs.writeSync(1, hash.digest('hex') + '\n');
			wait('DONE');
			process.exit(0);
		}

		function ask(i) {
			if (i === 50)
				return end();
			http.get({socketPath: socket, path: '/' + i, agent: false}, (answer) => {
				answer.on('data', (piece) => hash.update(piece));
				answer.on('end', () => ask(i + 1));
			});
		}

		server.listen(socket, () => {
			wait('READY');
			ask(0);
		});
	END
	same_answer node server.js
	# Some stacks through code that V8 makes are cut there.
	complete_min=990
	plausible alloc_space '^node::NodeArrayBufferAllocator::Allocate'
	site alloc_space '^node::NodeArrayBufferAllocator::Allocate' 75 $((50 * 2000000))
}

# C in Go: the stacks of its goroutines grow and are copied around the calls.
test_go_server() {
	local go

	go_command >/dev/null
	go=$(go_command)
	need cc
	cp "$TESTS/targets/cgo_server.go" .
	GOCACHE=$test_dir/cache GO111MODULE=off "$go" build -o server cgo_server.go
	same_answer ./server
	reader compare truth p.pb.gz
	top alloc_space '^work;.*runtime\.asmcgocall'
}

test_rust() {
	need rustc
	cat >index.rs <<-'END'
		use std::collections::HashMap;
		use std::io::{Read, Write};
		use std::thread;

		fn wait(word: &str) {
		    println!("{}", word);
		    std::io::stdout().flush().unwrap();
		    std::io::stdin().read_exact(&mut [0]).unwrap();
		}

		#[inline(never)]
		fn index_words(first: u64, index: &mut HashMap<String, Vec<u64>>) {
		    for n in first..first + 5000 {
		        index.entry(format!("word {}", n * n % 1009)).or_insert_with(Vec::new).push(n);
		    }
		}

		#[inline(never)]
		fn make_pages(first: u64) -> Vec<Box<[u8]>> {
		    (first..first + 50).map(|n| vec![n as u8; 20000].into_boxed_slice()).collect()
		}

		fn main() {
		    wait("READY");
		    let parts: Vec<_> = (0..4).map(|part| thread::spawn(move || {
		        let mut index = HashMap::new();
		        index_words(part * 5000, &mut index);
		        (index, make_pages(part))
		    })).collect();
		    let parts: Vec<_> = parts.into_iter().map(|part| part.join().unwrap()).collect();
		    for (index, pages) in &parts {
		        let sum: u64 = index.values().flatten().sum();
		        let bytes: u64 = pages.iter().flat_map(|page| page.iter()).map(|b| *b as u64).sum();
		        println!("{} {} {}", index.len(), sum, bytes);
		    }
		    wait("DONE");
		}
	END
	rustc -O -g index.rs
	same_answer ./index
	plausible alloc_space 'index::make_pages;.*;start_thread;'
	plausible inuse_space 'index::make_pages;.*;start_thread;'
	(($(reader total p.pb.gz inuse_space) >= 4 * 50 * 20000))
}

# A linker with an allocator of its own and, in Debian's, hardly any unwind information: its stacks
# are cut, and its work is the same. It looks for libraries first in a directory with a name of three
# thousand bytes, which it puts together with theirs as a string of the standard library.
test_mold() {
	local i libraries=() deep=$PWD/deep

	need mold cc
	for i in {1..200}; do
		echo "int f$i(void) { return $i; } const char *s$i(void) { return \"text $i\"; }"
	done >many.c
	{
		printf 'int f%d(void);\n' {1..200}
		cat <<-'END'
			#include <stdio.h>
			int main(void) { printf("%d\n",
		END
		printf 'f%d() + ' {1..200}
		echo '0); return 0; }'
	} >main.c
	cc -g -ffunction-sections -c many.c main.c
	mkdir linker
	cat >linker/ld <<-'END'
		#!/bin/sh
		exec $LINK mold --no-fork "$@"
	END
	chmod 755 linker/ld
	for i in {1..15}; do
		deep=$deep/$(printf 'd%.0s' {1..200})
	done
	mkdir -p "$deep"
	for i in {1..1000}; do
		libraries+=(-lm)
	done
	LINK='' cc -B"$PWD/linker" -o alone many.o main.o "-L$deep" "${libraries[@]}"
	LINK="$HEAPBPF -r 1 -o $PWD/p.pb.gz --" cc -B"$PWD/linker" -o watched many.o main.o "-L$deep" \
		"${libraries[@]}" 2>err
	cmp alone watched
	equal "$(./watched)" 20100 "answer of what was linked"
	site alloc_space '^std::__cxx11::basic_string<.*>::_M_' 15 $((1000 * ${#deep}))
}

e2e_main "$@"
