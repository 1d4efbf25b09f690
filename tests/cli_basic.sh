#!/usr/bin/env bash
# cli_basic.sh: help, version, errors and exit codes of the program. TAP; the program is $MIXWILD.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"

# every word begins an indented line
out_has_all() {
	local word
	for word; do grep -qE "^  $word( |\[|\$)" "$tmp/out" || return 1; done
}
quiet() { [ ! -s "$tmp/err" ]; }
# the message, one line, then the hint
usage_error() { status_is 2 && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 2 ] && err_has "$1" && err_has "try 'mixwild"; }

commands="train eval predict data topo tune tmix bound trace sweep report plot scaling bench list"

run --help
status_is 0 && quiet && out_has "Usage: mixwild COMMAND"
report "--help"
out_has_all $commands
report "--help names every command"
run --version
status_is 0 && quiet && grep -qE '^mixwild [0-9]+\.[0-9]+\.[0-9]+$' "$tmp/out"
report "--version"
run
usage_error "mixwild: a command is missing"
report "no command"
run trian --data x
usage_error "did you mean 'train'?" && err_has "mixwild: there is no command 'trian'" && err_has "try 'mixwild --help'"
report "unknown command names the nearest"
run --foo
usage_error "unknown option before the command: --foo"
report "unknown option before the command"

for c in $commands; do
	run "$c" --help
	status_is 0 && quiet && out_has "Usage: mixwild $c "
	report "$c --help"
	# examples are of files that are there
	[ -z "$(grep -oE ' (data|experiments)/[^ ]+' "$tmp/out" | while read -r f; do
		[ -e "${MW_SRCDIR:-.}/$f" ] || echo "$f"
	done)" ]
	report "$c --help: its examples can be run"
	run --man "$c"
	status_is 0 && quiet && out_has '.SH NAME' && out_has '.SH OPTIONS' && out_has '.SH EXIT STATUS'
	report "manual page of $c"
done
run --man
status_is 0 && quiet && out_has '.TH MIXWILD 1'
report "manual page of the program"

run topo --worker 2
usage_error "mixwild topo: unknown option --worker; did you mean --workers?" && err_has "try 'mixwild topo --help'"
report "a misspelt option names the right one"
run data --threads=-1 x
usage_error "mixwild data: option --threads: -1 is out of range (0..1024)"
report "a value out of range is named with the range"
run topo --places=cor
usage_error "there is no 'cor' (choose from pu|core|l3|package|numa|auto); did you mean 'core'?"
report "a word that is no choice"
run topo --workers
usage_error "option --workers needs a value"
report "a value is missing"
run topo extra
usage_error "argument 'extra' is one too many"
report "one argument too many"
run data
usage_error "mixwild data: "
report "an argument is missing"
run data --format json --format=text --no-oversubscribe x
usage_error "unknown option --no-oversubscribe"
report "an option of another command"

run train --optimizer sgd --beta1 0.5
usage_error "option --beta1 belongs to optimizer amsgrad, optimizer adam, but optimizer sgd is chosen"
report "an option of a plug-in that is not chosen names who has it"
run train --protocol loca-sgd
usage_error "there is no protocol 'loca-sgd' (there are: sequential, hogwild, " && err_has "did you mean 'local-sgd'?"
report "an unknown protocol names the nearest and all"
printf '{ "summary": 1,\n  "config": {\n    "worker": 3 } }\n' >"$tmp/bad.json"
run train --config "$tmp/bad.json"
usage_error "$tmp/bad.json:3:5: unknown option worker; did you mean workers?"
report "a wrong configuration file is named with line and column"
printf '{\n  "seed": 1,\n}\n' >"$tmp/bad.json"
run train --config "$tmp/bad.json"
status_is 3 && err_has "$tmp/bad.json:3:1: not valid JSON: "
report "a configuration file that is not JSON"
printf '{ "optimizer": "amsgrad", "beta1": 0.5 }\n' >"$tmp/good.json"
run train --config "$tmp/good.json" --optimizer sgd --data "$tmp/missing"
status_is 3 && err_has "$tmp/missing"
report "the command line chooses another plug-in than the configuration file"
printf '{ "optimizer": "sgd", "beta1": 0.5 }\n' >"$tmp/bad.json"
run train --config "$tmp/bad.json"
usage_error "option --beta1 belongs to optimizer amsgrad"
report "a configuration file has to agree with itself"

run data "$tmp/missing"
status_is 3 && err_has "mixwild data: $tmp/missing: " && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ]
report "a missing file: status 3, one line"

printf '+1 1:0.5 3:2 # comment\n-1 2:1\n-1 1:3\n' >"$tmp/small.svm"
run data "$tmp/small.svm"
status_is 0 && quiet && grep -qE '^rows +3$' "$tmp/out" && grep -qE '^features +3$' "$tmp/out" &&
	grep -qE '^non-zeros +4 \(density 44.44 %\)$' "$tmp/out" &&
	grep -qE '^row length +min 1, mean 1.333, max 2$' "$tmp/out" && grep -qE '^index base +1$' "$tmp/out" &&
	grep -qE '^  -1 +2 +66.67 %$' "$tmp/out" && grep -qE '^  1 +1 +33.33 %$' "$tmp/out"
report "data describes a file"
run data "$tmp/small.svm" --format json
status_is 0 && quiet && out_has '"nnz": 4' && out_has '"rows": 3' && out_has '"index_base": 1' && out_has '"count": 2'
report "data as JSON"
run data "$tmp/small.svm" --format csv
status_is 0 && [ "$(wc -l <"$tmp/out")" -eq 2 ] && out_has ",libsvm,sparse,3,3,4,0.444444444,1,1.33333333,2,1,0,0,2,-1:2;1:1,"
report "data as CSV"
run data synth:sparse,rows=100,features=50,nnz=5
status_is 0 && quiet && grep -qE '^rows +100$' "$tmp/out" && grep -qE '^format +synth, sparse$' "$tmp/out"
report "data describes synthetic data"

run list
status_is 0 && quiet && out_has_all hogwild async-ps logistic amsgrad constant ring libsvm train
report "list has something of every kind"
run list protocols
status_is 0 && quiet && out_has "  hogwild " && ! out_has "logistic"
report "list protocols lists protocols"
run list models --format csv
status_is 0 && [ "$(head -1 "$tmp/out")" = "family,name,summary,detail" ] && grep -q '^model,logistic,' "$tmp/out"
report "list as CSV"
run list --format json
status_is 0 && quiet && out_has '"optimizers": [' && out_has '"name": "token-ring"'
report "list as JSON"
run list modles
usage_error "did you mean 'models'?"
report "a list that there isn't"

run topo
status_is 0 && quiet && out_has "w0"
report "topo shows the first worker"
run topo --topology "synthetic:pack:2 numa:1 core:2 pu:2" --workers pus --format json
status_is 0 && quiet && out_has '"n_workers": 8' && out_has '"applied": false'
report "topo plans for another machine"

# a run of hours that is told to stop
"$mixwild" train --data synth:sparse,rows=1000,features=100 --epochs 1000000000 --workers 1 --eval-every 1000 \
	--out "$tmp/run" >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
for ((i = 0; i < 100; i++)); do
	[ -s "$tmp/run/metrics.jsonl" ] && break
	sleep 0.1
done
kill -TERM $pid
wait $pid
status=$?
status_is 143 && [ -s "$tmp/run/run.json" ]
report "SIGTERM ends a run with status 143 and saves it"

if [ -c /dev/full ]; then
	"$mixwild" list >/dev/full 2>"$tmp/err"
	status=$?
	status_is 4 && err_has "No space left on device"
	report "a full standard output is an error"
else
	n=$((n + 1))
	echo "ok $n - a full standard output is an error # SKIP no /dev/full"
fi
"$mixwild" list >&- 2>"$tmp/err"
status=$?
status_is 4 && err_has "written"
report "a closed standard output is an error"
{ "$mixwild" list 2>"$tmp/err"; echo $? >"$tmp/status"; } | true
status=$(cat "$tmp/status")
{ status_is 141 || status_is 0; } && quiet
report "a reader that leaves ends the program quietly"

echo "1..$n"
