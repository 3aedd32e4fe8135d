#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# weft_test.sh WEFT [puts|no-puts]: the command line of weft as a user meets it: help, statuses, messages,
# 'weft run' around programs that fail, and the symbol versions that the binary needs. With no-puts, what
# puts by libweft-btl is left out: ThreadSanitizer does not know how that is ordered.

weft=$1
put_providers='shm link'
[ "${2:-puts}" = puts ] || put_providers=
# Directories that this user can't read would turn 'no such program' into 'permission denied'.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# expect NAME STATUS PATTERN COMMAND...: the status, and a line of its output that matches.
expect()
{
	name=$1 status=$2 pattern=$3
	shift 3
	"$@" >"$dir/out" 2>&1
	got=$?
	if [ "$got" != "$status" ]; then
		echo "FAIL $name: status $got, not $status"
	elif [ -n "$pattern" ] && ! grep -q -- "$pattern" "$dir/out"; then
		echo "FAIL $name: no line matches '$pattern'"
	else
		echo "ok   $name"
		return
	fi
	sed 's/^/     | /' "$dir/out"
	failed=1
}

# Any libfabric.so.1 will do here, and the file need not be one to be put in place.
lib=$dir/lib
mkdir "$lib"
touch "$lib/libfabric.so.1"
run="$weft run --library=$lib"

expect 'weft alone shows its usage' 2 '^Usage: weft COMMAND' "$weft"
expect 'weft --help lists the commands' 0 '^  bench ' "$weft" --help
expect 'an unknown command is named' 2 "no command 'frob'" "$weft" frob
expect 'weft --version names the library' 0 'libfabric' "$weft" --version
for command in info pingpong bench scale run mem tcp copy; do
	expect "weft $command --help" 0 "^Usage: weft $command" "$weft" $command --help
	expect "weft $command knows its options" 2 "weft $command --help" \
		"$weft" $command --frob
done
expect 'a bad size is named' 2 "'8q' is not a list" "$weft" bench -S 8q
expect 'a bad hint is named' 2 "'FI_FROB' is not known" "$weft" info -c FI_FROB
expect 'and those that are known are listed' 2 '^ FI_EP_UNSPEC FI_EP_MSG FI_EP_DGRAM FI_EP_RDM$' \
	"$weft" info -t frob
expect 'a provider that is missing is an error' 1 'No data available' \
	"$weft" info -p no-such-provider
expect 'a question without an answer has a nearest one' 1 '^would be answered without FI_HMEM$' \
	"$weft" info --why -p shm -c 'FI_MSG|FI_HMEM'
expect 'all that is in the way is named' 1 \
	'^would be answered without FI_HMEM and without ep_attr->type$' \
	"$weft" info --why -p shm -c 'FI_MSG|FI_HMEM' -t FI_EP_DGRAM
expect 'of what the named provider refuses that is left out' 1 '^would be answered without service$' \
	"$weft" info --why -p tcp -P no-such-service
"$weft" info --why -n localhost -P 99999 >"$dir/out" 2>&1
if [ "$(grep -c 'reason of its own' "$dir/out")" != 1 ] || ! grep -q '^lnx, sm2, ' "$dir/out"; then
	echo 'FAIL info --why has one line for all that give no reason'
	sed 's/^/     | /' "$dir/out"
	failed=1
else
	echo 'ok   info --why has one line for all that give no reason'
fi
expect 'a reason for each interface has a line of its own' 1 \
	'^    the hints ask for the fabric frob, and this one is 127.0.0.0/8$' \
	"$weft" info --why -p tcp -f frob
expect 'every capability has its name' 1 'the hints ask for FI_XPU' "$weft" info --why -c FI_XPU
expect 'a process without registered memory is told' 1 "process $$: it shows no registered memory" \
	"$weft" mem $$
expect 'a process that is not there is told' 1 'process 4194305: there is no such process' \
	"$weft" mem 4194305
expect 'a name that nothing has is told' 1 'no process of that name' "$weft" mem no-such-name
for pid in 0 00 99999999999; do
	expect "$pid is no process's number" 2 "'$pid' is not a process's number" \
		"$weft" mem $pid
done
expect 'mem wants a command behind --' 2 'no command to run' "$weft" mem --watch=1 --
expect 'and without an option too' 2 'no command to run' "$weft" mem --
expect 'a picture wants the name of its file' 2 'plot= has no name of a file' \
	"$weft" mem --plot= 1
expect 'and so do figures' 2 'json= has no name of a file' "$weft" mem --json= 1
"$weft" mem --plot="$dir/all.svg" --json 2>"$dir/out" &
pid=$!
for _ in $(seq 1000); do
	grep -q 'until it is interrupted' "$dir/out" && break
	sleep 0.01
done
kill -TERM $pid
wait $pid
if grep -q 'until it is interrupted' "$dir/out"; then
	echo 'ok   what has no end is told'
else
	echo 'FAIL what has no end is told'
	failed=1
fi
expect 'a command needs to be looked at over time' 2 'watch or --plot' "$weft" mem -- true
expect 'the status of a command is passed on' 3 '^  seconds' "$weft" mem --watch=0.01 -- sh -c 'exit 3'
expect 'a command that is not there is told' 127 'no such program' \
	"$weft" mem --watch=1 -- /nowhere/frob
expect 'a picture of no file is told before the command runs' 1 'nowhere' \
	"$weft" mem --plot=/nowhere/x -- touch "$dir/touched"
expect 'and so is a file of figures' 1 'nowhere' \
	"$weft" mem --watch=1 --json=/nowhere/x -- touch "$dir/touched"
[ ! -e "$dir/touched" ] || { echo 'FAIL the command has run'; failed=1; }
bench_mem="$weft bench -p shm --mem -S 64k -t lat -r 4 -i 50"
expect 'memory is drawn while a command runs' 0 '' "$weft" mem --plot="$dir/mem.svg" -- $bench_mem
expect 'the picture of memory is XML' 0 '' python3 -c '
import sys, xml.etree.ElementTree
assert xml.etree.ElementTree.parse(sys.argv[1]).getroot().tag.endswith("svg")' "$dir/mem.svg"
for form in '' --json; do
	expect "stdout is the command's: --watch $form" 0 '^program$' \
		sh -c "$weft mem $form --watch=0.01 -- sh -c 'sleep 0.1; echo program' 2>$dir/err"
	if [ "$(wc -l <"$dir/out")" != 1 ] || ! grep -q seconds "$dir/err"; then
		echo 'FAIL the figures are on stderr'
		failed=1
	fi
done
# until_seen FILE PATTERN COMMAND...: runs it again and again, until a line of the file matches, or a minute is over.
cat >"$dir/until_seen" <<'END'
file=$1 pattern=$2 end=$(($(date +%s) + 60))
shift 2
until grep -q -- "$pattern" "$file" 2>/dev/null; do
	[ "$(date +%s)" -lt $end ] && "$@" >/dev/null || exit 1
done
END
until_seen="sh $dir/until_seen"
whole='python3 -c "import json, sys; [json.loads(line) for line in open(sys.argv[1])]"'
expect 'each sample is an object of the file' 0 '' sh -c "$weft mem --json=$dir/m --watch=0.02 -- \
	$until_seen $dir/m 'live_bytes\": \(6[6-9]\|[7-9].\|[0-9]\{3,\}\)[0-9]\{3\}' $bench_mem && $whole $dir/m"

bench_tcp="$weft bench -p tcp -S 1M -t lat -r 10 -i 100"
expect 'the connections of a command are told' 0 '' sh -c "$weft tcp --json=$dir/tcp --watch=0.02 -- \
	$until_seen $dir/tcp 'connections\": [1-9].*sent_bytes\": [0-9]\{6\}' $bench_tcp && $whole $dir/tcp"
expect 'connections are drawn up in lines' 0 '^program$' sh -c "$weft tcp --watch=0.02 -- \
	$until_seen $dir/lines '^ *[0-9.]* 2 processes  *2 .* [0-9]\{6,\}  *[0-9]\{6,\}$' $bench_tcp 2>$dir/lines && echo program"
expect 'a watch ends with what it looks at' 1 'has shown connections' "$weft" tcp --watch no-such-name
expect 'a process without connections is told' 1 'it shows no connections over tcp' "$weft" tcp $$
expect 'what tcp does not know is told' 2 'tcp --help' "$weft" tcp --frob
expect 'the settings of memory are told' 0 '^# FI_MEM_DECAY: ' "$weft" info -g mem
expect 'and where it is switched on' 0 'FI_MEM_LIMIT' "$weft" run --help
expect 'settings that are not there are nothing found' 1 "no setting has 'frob'" \
	"$weft" info -g frob
expect 'bench names the provider that is missing' 1 'no provider frob offers' \
	"$weft" bench -p frob
expect 'and how to hear why' 1 "'weft info --why -p \"shm\" -d \"frob\" -t FI_EP_RDM -c \"FI_MSG\"' gives" \
	"$weft" pingpong --fork -p shm -d frob
expect 'what it says to call says why' 1 "the hints ask for the domain frob" \
	"$weft" info --why -p shm -d frob -t FI_EP_RDM -c FI_MSG

# A run of a second: its JSON, its picture, and its line of progress.
bench="$weft bench -p shm -S 8,4k -t lat,bw -r 2 -i 4"
expect 'bench writes its files beside the table' 0 '^one-way latency, us' \
	$bench --json="$dir/json" --plot="$dir/svg"
expect 'the plot is XML' 0 '' python3 -c '
import sys, xml.etree.ElementTree
assert xml.etree.ElementTree.parse(sys.argv[1]).getroot().tag.endswith("svg")' "$dir/svg"
expect 'the JSON has every figure' 0 '^latency,latency,bandwidth,bandwidth$' python3 -c '
import json, sys
whole = json.load(open(sys.argv[1]))
assert whole["a"]["provider"] == "shm" and whole["machine"]["cores"] > 0
assert all(len(row["a"]["samples"]) == 2 for row in whole["figures"])
print(",".join(row["test"] for row in whole["figures"]))' "$dir/json"
expect 'JSON alone is one object' 0 '' sh -c "$bench --json | python3 -c '
import json, sys
json.load(sys.stdin)'"
expect 'a comparison has ratios' 0 '^same\|faster\|slower$' sh -c "$bench --vs-provider=shm \
	--restarts=1 --json | python3 -c '
import json, sys
row = json.load(sys.stdin)[\"figures\"][0]
assert row[\"ratio\"][\"median\"] > 0 and row[\"aa\"][\"median\"] > 0
print(row[\"verdict\"])'"
expect 'B may be another program' 0 '^same\|faster\|slower$' sh -c "$bench --vs-program=$weft \
	--restarts=1 --json | python3 -c '
import json, sys
print(json.load(sys.stdin)[\"figures\"][0][\"verdict\"])'"
expect 'a program that is not there is named' 1 'cannot start /nowhere' \
	$bench --vs-program=/nowhere --restarts=1
for option in library vs-library; do
	expect "a comparison needs its --$option" 1 "no libfabric.so.1 in '/'" $bench --$option=/
done
expect 'a core that may not be used is named' 1 'cannot run on cpu 1023' \
	"$weft" pingpong --fork --cpus=0,1023
expect 'a file that cannot be written costs no measurement' 1 'nowhere' \
	$bench --json=/nowhere/x
if [ -s "$dir/out" ] && grep -q latency "$dir/out"; then
	echo 'FAIL bench measured before it opened its files'
	failed=1
fi
$bench >/dev/null 2>"$dir/err"
if [ -s "$dir/err" ]; then
	echo 'FAIL bench writes progress into a file'
	sed 's/^/     | /' "$dir/err"
	failed=1
else
	echo 'ok   bench writes no progress into a file'
fi
expect 'bench shows progress on a terminal' 0 'warming up, latency 8, 0%' \
	env SHELL=/bin/sh script -qec "$bench" /dev/null

expect 'both of a comparison may be refused calls' 0 '^process_vm 2$' sh -c "$bench \
	--vs-provider=shm --restarts=1 --refuse=process_vm --json | python3 -c '
import json, sys
whole = json.load(sys.stdin)
print(whole[\"refused\"], len(whole[\"figures\"][0][\"a2\"]))'"
expect 'what cannot be refused is named' 2 "not 'frob'" $bench --refuse=frob

# One-sided tests: every byte right where there is RMA, and a plain word where there is none. The
# target reads the memory that is written: by itself, and by nobody's thread, which ThreadSanitizer wants.
for provider in link shm tcp; do
	rma="$weft bench -p $provider -t write,read,writebw,readbw -S 1,4k -r 1 -i 4 -c --progress=manual"
	if "$weft" info -p $provider -c 'FI_RMA' >/dev/null 2>&1; then
		expect "bench writes and reads over $provider" 0 '^RMA read bandwidth' $rma
	else
		expect "bench tells that $provider has no RMA" 1 'messages with RMA on' $rma
	fi
	if "$weft" info -p $provider -c 'FI_ATOMIC' >/dev/null 2>&1; then
		expect "bench fetches and adds over $provider" 0 '^atomic fetch and add, us' \
			"$weft" bench -p $provider -t atomic -S 8 -r 1 -i 4 --progress=manual
		expect "bench adds over $provider" 0 '^atomic additions, M/s' \
			"$weft" bench -p $provider -t add -S 8 -r 1 -i 400 --progress=manual
	fi
done
if "$weft" info -p tcp >/dev/null 2>&1; then
	expect 'bench connects endpoints' 0 '^one-way latency, us' \
		"$weft" bench -p tcp -e msg -m msg -t lat,bw,write,atomic -S 8,64k -r 2 -i 4 -c --progress=manual
	expect 'bench connects endpoints of tagged messages' 0 '^one-way latency, us' \
		"$weft" bench -p tcp -e msg -t lat,first -S 8 -r 2 -i 4
fi
for wait in fd sread; do
	expect "bench waits by $wait, and adds up processor time" 0 '^processor time of a stream, both sides, ms/GB' \
		"$weft" bench -p tcp --wait=$wait -t lat,bw,cpu -S 8,64k -r 2 -i 70 -c
done
expect 'a wait is one of three' 2 "not 'frob'" "$weft" bench -p tcp --wait=frob
expect 'a target that polls its memory does not sleep' 2 'tests with --wait' "$weft" bench -p tcp -t write --wait=fd
for provider in shm tcp; do
	expect "bench makes calls over $provider" 0 '^remote procedure call, us' \
		"$weft" bench -p $provider -t rpc@8+4k+20k,first@2k,register@64k -r 2 -i 4 -c --progress=manual
done
for provider in shm tcp; do
	expect "bench reads from a target over $provider that makes no calls" 0 '^RMA read of a passive target, us' \
		"$weft" bench -p $provider -t passive@8+20k -r 2 -i 4 -c --progress=auto
done
expect 'a passive target needs automatic progress' 2 'needs --progress=auto' \
	"$weft" bench -p shm -t passive
expect 'a passive target is not run in real time' 2 'under --realtime' \
	"$weft" bench -p shm -t passive --progress=auto --realtime
expect "tests of libweft-btl need --btl" 2 'put,get,fetch,puts' "$weft" bench -p shm -t put
for provider in $put_providers; do
	expect "bench measures libweft-btl over $provider" 0 '^the same by two threads, M/s' "$weft" bench --btl \
		-p $provider -t put@8+80k,get@8+80k,fetch,puts@8+80k,puts1@8,puts2@8+80k -r 2 -i 4
done
expect 'two pairs run at a time' 0 '^same\|faster\|slower$' sh -c "$bench --pairs=2 --restarts=1 --json | python3 -c '
import json, sys
print(json.load(sys.stdin)[\"figures\"][0][\"verdict\"])'"
expect 'a test may have sizes of its own' 0 '^latency8,latency4096,rate8,write64$' sh -c "$weft bench \
	-p shm -S 8,4k -t lat,rate@8,write@64 -r 1 -i 4 --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)[\"figures\"]
print(\",\".join(row[\"test\"] + str(row[\"size\"]) for row in rows))'"
expect 'an unknown test is named' 2 "'lat,frob' is not a list of lat,bw" \
	"$weft" bench -t lat,frob

for provider in link shm tcp; do
	expect "scale measures $provider" 0 '^the ratio of the two' \
		"$weft" scale -p $provider -e 5 -n 5 -r 2 -i 100
done
expect 'the JSON of scale has every figure' 0 '^shm 3 4 2 2$' sh -c "$weft scale -p shm -e 3 -n 4 \
	-r 2 -i 100 --json | python3 -c '
import json, sys
whole = json.load(sys.stdin)
assert all(sum(whole[what].values()) > 0 for what in (\"endpoint_bytes\", \"pair_bytes\"))
print(whole[\"provider\"], whole[\"endpoints\"], whole[\"peers\"], len(whole[\"idle_one_ns\"]),
      len(whole[\"idle_many_ns\"]))'"
expect 'scale measures idle domains' 0 '^an idle domain, of 2 .* wake-ups a second' \
	"$weft" scale -p shm -e 2 -n 2 -r 1 -i 100 --idle=2
expect 'scale names the provider that is missing' 1 'no provider frob offers' \
	"$weft" scale -p frob

expect 'run wants a program' 2 'no program to run' "$weft" run
expect 'run opens the file of its report first' 1 '^weft run: /nowhere/x: No such' \
	"$weft" run --report=/nowhere/x -- echo started
expect 'run names a library that is missing' 1 "no libfabric.so.1 in '/'" \
	"$weft" run --library=/ true
expect 'run puts the library first' 0 "^$lib:/x\$" \
	env LD_LIBRARY_PATH=/x $run sh -c 'echo $LD_LIBRARY_PATH'
for report in '' --report; do
	expect "run $report keeps the exit status" 3 '' $run $report sh -c 'exit 3'
	expect "run $report: no such program" 127 'no such program' $run $report no-such-program
	expect "run $report: not a program" 126 'Permission denied' $run $report /etc/passwd
	expect "run $report: options end at the program" 0 '^--help$' \
		$run $report printf "%s\n" --help
done
expect 'run --report says which signal killed' 137 'killed by signal 9' \
	$run --report sh -c 'kill -9 $$'
expect 'run --report ends where its parent ignores the ends of children' 3 '' \
	timeout -s KILL 60 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])' $run --report sh -c 'exit 3'
expect 'run --report passes stderr on' 0 '^to stderr$' $run --report sh -c 'echo to stderr >&2'

line='weft-routes: host=h pid=1 wire=shm peers=1 tx_msgs=2 tx_bytes=30 rx_msgs=4 rx_bytes=50'
expect 'run --report prints a table' 0 '^h  *shm  *1  *2  *30  *4  *50$' \
	$run --report sh -c "echo '$line' >&2"
if grep -q weft-routes: "$dir/out"; then
	echo 'FAIL run --report leaves report lines in stderr'
	failed=1
fi
expect 'run --report=FILE writes the table there' 0 '' \
	$run --report="$dir/report" sh -c "echo '$line' >&2"
expect 'the file has the table' 0 ' shm ' cat "$dir/report"
expect 'run --report asks every provider' 0 '^1 1 1$' \
	$run --report sh -c 'echo $FI_LINK_REPORT $FI_SHM_REPORT $FI_TCP_REPORT'

# A signal sent to weft run reaches the program, whose own status then counts.
mkfifo "$dir/ready"
$run --report sh -c 'trap "exit 9" TERM; echo >"$1"; while :; do sleep 0.05; done' \
	sh "$dir/ready" 2>"$dir/out" &
pid=$!
read -r _ <"$dir/ready"
kill -TERM $pid
wait $pid
got=$?
if [ $got = 9 ]; then
	echo 'ok   run --report forwards signals'
else
	echo "FAIL run --report forwards signals: status $got, not 9"
	failed=1
fi

# One binary for stock libraries too: Debian's 1.17 has nothing newer than FABRIC_1.6.
if command -v objdump >/dev/null; then
	newer=$(objdump -T "$weft" | grep -o 'FABRIC_[0-9.]*' | sort -u |
		grep -v '^FABRIC_1\.[0-6]$')
	if [ -n "$newer" ]; then
		echo "FAIL the binary needs $newer: see fabric.h"
		failed=1
	else
		echo 'ok   the binary needs no symbol newer than FABRIC_1.6'
	fi
fi

exit $failed
