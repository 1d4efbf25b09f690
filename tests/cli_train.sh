#!/usr/bin/env bash
# cli_train.sh: runs of `mixwild train` from outside: files, refusals, exit codes, signals, odd counts. TAP; the program is
# $MIXWILD, the source folder $MW_SRCDIR.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"
data=${MW_SRCDIR:-.}/data

# train ARGUMENT...: fills $tmp/out, $tmp/err, $status
train() { run train "$@"; }

# is_json FILE: mixwild's own parser says whether it is JSON: read as a configuration, other JSON objects are a usage
# error (2: no such option), what is no JSON is a data error (3).
is_json() {
	"$mixwild" train --config "$1" --data "$tmp/nowhere" >/dev/null 2>"$tmp/json-err"
	! grep -q 'not valid JSON' "$tmp/json-err"
}
# every line of a file of lines, the last one whole
are_json_lines() {
	local line
	[ -s "$1" ] && [ "$(tail -c 1 "$1" | od -An -tx1 | tr -d ' ')" = 0a ] || return 1
	while IFS= read -r line; do
		printf '%s\n' "$line" >"$tmp/line.json"
		case $line in '{'*'}') is_json "$tmp/line.json" || return 1 ;; *) return 1 ;; esac
	done <"$1"
}
# has_keys FILE KEY...
has_keys() {
	local file=$1 key
	shift
	for key; do grep -q "\"$key\": *" "$file" || { echo "# $file has no $key"; return 1; }; done
}
# one evaluation at the start, then one an epoch
evaluations_are() { [ "$(wc -l <"$1/metrics.jsonl")" -eq "$2" ]; }
four_files() { [ -s "$1/run.json" ] && [ -s "$1/metrics.jsonl" ] && [ -s "$1/layout.txt" ] && [ -s "$1/model.safetensors" ]; }
# no temporary file stays behind
no_leftovers() { [ -z "$(ls -A "$1" | grep -vE '^(run\.json|metrics\.jsonl|layout\.txt|(model|checkpoint)\.safetensors|trace\.bin)$')" ]; }

small=synth:sparse,rows=300,features=50,nnz=5

# --- files

if [ -e "$data/spam-train.svm.gz" ]; then
	train --data "$data/spam-train.svm.gz" --test "$data/spam-test.svm.gz" --workers 1 --rate 0.2 --epochs 2 --out "$tmp/spam"
	status_is 0 && four_files "$tmp/spam" && no_leftovers "$tmp/spam" && evaluations_are "$tmp/spam" 3 && out_has "test loss"
	report "training on the spam data writes the four files"
	accuracy=$(sed -n 's/.*"test_accuracy": *\([0-9.]*\).*/\1/p' "$tmp/spam/run.json")
	awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8 && a <= 1) }'
	report "and it has learnt something"
fi

train --data $small --workers 2 --oversubscribe --epochs 3 --val 0.2 --grad-norm --out "$tmp/a/b/run"
status_is 0 && four_files "$tmp/a/b/run" && no_leftovers "$tmp/a/b/run" && evaluations_are "$tmp/a/b/run" 4
report "folders are made, files are written"
is_json "$tmp/a/b/run/run.json"
report "run.json is JSON"
has_keys "$tmp/a/b/run/run.json" mixwild command started seed config isa machine layout data parameters protocol workers \
	summary
report "run.json has its members"
has_keys "$tmp/a/b/run/run.json" train_loss train_accuracy val_loss val_accuracy test_loss test_accuracy grad_norm \
	consensus_distance epochs examples seconds virtual_seconds examples_per_s staleness mean p50 p99 max t_mix exact trace \
	probe passive stopped_by
report "the summary has the documented keys"
are_json_lines "$tmp/a/b/run/metrics.jsonl"
report "every line of metrics.jsonl is JSON"
for key in epoch steps examples seconds train_loss val_loss rate staleness consensus_distance grad_norm; do
	[ "$(grep -c "\"$key\":" "$tmp/a/b/run/metrics.jsonl")" -eq 4 ] || break
done
report "every line has the documented keys"
grep -q 'worker' "$tmp/a/b/run/layout.txt"
report "layout.txt has the workers"
out_has "train loss" && out_has "stopped by epochs" && [ "$(grep -c . "$tmp/out")" -eq 2 ]
report "the result is on standard output, the rest is not"

train --data $small --workers 1 --epochs 1 --out "$tmp/a/b/run"
status_is 2 && err_has "--out $tmp/a/b/run: there is a run in this folder already" && err_has "--force" &&
	evaluations_are "$tmp/a/b/run" 4
report "an earlier run is not overwritten"
train --data $small --workers 1 --epochs 1 --out "$tmp/a/b/run" --force
status_is 0 && evaluations_are "$tmp/a/b/run" 2
report "--force replaces it"
train --data $small --workers 1 --epochs 1 --out "$tmp/a/b/run/run.json/x"
status_is 4 && err_has "can't make the folder"
report "a folder that can't be made"
: >"$tmp/empty"
train --data "$tmp/empty" --workers 1
status_is 3 && err_has "$tmp/empty"
report "data without examples"
train --workers 1
status_is 2 && err_has "--data is missing"
report "no data"

# --- ends

train --data $small --workers 1 --rate 1e9 --model squared --epochs 5 --out "$tmp/diverged"
status_is 5 && err_has "--rate" && has_keys "$tmp/diverged/run.json" summary && are_json_lines "$tmp/diverged/metrics.jsonl" &&
	grep -q '"stopped_by": "diverged"' "$tmp/diverged/run.json"
report "a rate of 1e9 diverges: status 5, files written"
train --data synth:dense,rows=300,features=20,classes=4 --protocol sync-ps --workers 2 --oversubscribe --rate 1e30 --epochs 9 \
	--optimizer sgd --momentum 0.9
status_is 5
report "so does a barrier's run"
train --data $small --workers 1 --epochs 100 --target-accuracy 0.6 --out "$tmp/target"
status_is 0 && out_has "stopped by target" && [ "$(wc -l <"$tmp/target/metrics.jsonl")" -lt 100 ]
report "a target ends the run"
train --data $small --workers 1 --epochs 0 --out "$tmp/zero"
status_is 0 && evaluations_are "$tmp/zero" 1 && out_has "0 examples"
report "no epochs: the start is evaluated"

# interrupt NAME SIGNAL STATUS ARGUMENT...: a run that would last for hours, stopped
interrupt() {
	local dir=$tmp/$1 signal=$2 want=$3 pid i
	shift 3
	"${default_signals[@]}" "$mixwild" train --epochs 1e6 --eval-every 1 --out "$dir" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	for i in $(seq 200); do # until it trains
		[ -s "$dir/metrics.jsonl" ] && [ "$(wc -l <"$dir/metrics.jsonl")" -ge 3 ] && break
		sleep 0.05
	done
	kill -s "$signal" "$pid"
	for i in $(seq 200); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -s KILL "$pid" 2>/dev/null && { wait "$pid" 2>/dev/null; status=did-not-end; return 1; }
	wait "$pid"
	status=$?
	[ "$status" -eq "$want" ] && four_files "$dir" && is_json "$dir/run.json" && are_json_tail "$dir/metrics.jsonl" &&
		grep -q '"stopped_by": "signal"' "$dir/run.json" && has_keys "$dir/run.json" train_loss examples
}
# long files: the first and the last lines
are_json_tail() {
	{ head -n 3 "$1"; tail -n 5 "$1"; } >"$tmp/tail.jsonl"
	are_json_lines "$tmp/tail.jsonl" && ! grep -qv '^{.*}$' "$1"
}
# A background job of a script ignores SIGINT unless job control is on; and where this script was itself started with
# SIGINT ignored (nohup, another script's background), only env can give the default back.
set -m
default_signals=()
env --default-signal=INT,TERM true 2>/dev/null && default_signals=(env --default-signal=INT,TERM)
interrupt int INT 130 --data $small --workers 2 --oversubscribe
report "SIGINT ends a run with 130, files saved"
interrupt term TERM 143 --data $small --protocol local-sgd --workers 3 --oversubscribe
report "SIGTERM ends a run under a barrier with 143"
interrupt sim INT 130 --data $small --protocol async-ring --workers 9 --engine sim
report "SIGINT ends a simulated run"
interrupt ssp INT 130 --data $small --protocol ssp --workers 3 --oversubscribe --straggler only:0,0.001
report "SIGINT ends a run behind a gate"
interrupt turns INT 130 --data $small --protocol async-ps --workers 3 --oversubscribe --activation random
report "SIGINT ends a run in turns"
set +m

# --- refusals

train --data $small --protocol hogwild --workers 1 --mix-every 3
status_is 2 && err_has "--mix-every: protocol hogwild exchanges nothing" && err_has "async-gossip" && err_has "cached"
report "a mixing knob without plans is refused and names those that have some"
for knob in --slack=0.5 --mix-fraction=0.5 --mix-order=before --mix-form=separate --mix-precision=kahan --mix-blocks=random; do
	train --data $small --protocol leashed --workers 1 $knob
	status_is 2 && err_has "${knob%=*}: protocol leashed exchanges nothing" || break
done
report "every mixing knob"
train --data $small --workers 1 --protocol hogwild --graph ring
status_is 2 && err_has "takes no graph"
report "a graph for a protocol without one"
train --data $small --protocol leashed --workers 1 --access locked
status_is 2 && err_has "leashed has its own way"
report "an access mode for whole versions"
train --data $small --protocol sequential --workers 2 --oversubscribe
status_is 2 && err_has "sequential has one worker"
report "two workers for the sequential protocol"
train --data $small --protocol local-sgd --workers 2 --oversubscribe --gate none
status_is 2 && err_has "its gate is a barrier"
report "no gate for a protocol of rounds"
train --data $small --protocol cached --workers 2 --oversubscribe --state shared --optimizer amsgrad
status_is 2 && err_has "--state shared needs one replica"
report "shared state without a shared replica"
train --data $small --protocol sync-gossip --graph hypercube --workers 3 --oversubscribe
status_is 2 && err_has "hypercube"
report "a graph that needs a power of two"
train --data $small --workers 999
status_is 4 && err_has "--oversubscribe"
report "more workers than PUs: status 4, names --oversubscribe"
train --data $small --workers 0
status_is 2
report "no workers"

# --- odd counts

odd=0
for protocol in hogwild cached sync-ps async-ps ssp local-sgd sync-ring async-ring numa token-ring leashed; do
	for workers in 1 3 7; do
		train --data synth:sparse,rows=40,features=30,nnz=4 --protocol $protocol --workers $workers --oversubscribe --epochs 2
		status_is 0 || { odd=1; break 2; }
	done
done
[ $odd -eq 0 ]
report "1, 3 and 7 workers${odd:+ }($protocol $workers last)"
train --data synth:sparse,rows=3,features=30,nnz=4 --protocol hogwild --workers 7 --oversubscribe --epochs 3
status_is 0
report "more workers than rows"
train --data synth:sparse,rows=3,features=30,nnz=4 --protocol local-sgd --workers 7 --oversubscribe --epochs 3 --data-place shard
status_is 0
report "more workers than rows, each with its own part"
train --data synth:dense,rows=10,features=5,classes=3 --batch 64 --workers 2 --oversubscribe --epochs 2 --protocol sync-ps
status_is 0
report "a batch larger than the data"
train --data synth:regression,rows=1,features=1 --workers 1 --epochs 2
status_is 0
report "one row, one feature"
train --data $small --protocol async-gossip --graph complete --workers 1000 --engine sim --epochs 1
status_is 0
report "1000 virtual workers on 300 rows"
train --data synth:quadratic,dim=1 --protocol sync-ring --workers 2 --engine sim --epochs 1 --mix-fraction 0.01
status_is 0
report "more blocks than coordinates"

# --- the binary cache

cp "$data/spam-test.svm.gz" "$tmp/spam.svm.gz"
cached() {
	train --data "$tmp/spam.svm.gz" --protocol sequential --workers 1 --epochs 1 --out "$tmp/cached" --force "$@"
	loss=$(sed -n 's/.*"train_loss": \([0-9.e-]*\).*/\1/p' "$tmp/cached/run.json" | tail -n 1)
}
cached
first=$loss
status_is 0 && [ -n "$first" ] && ! ls "$tmp"/*.mwcache >/dev/null 2>&1
report "no cache is written unasked"
cached --cache on
status_is 0 && err_has "cache     written: $tmp/spam.svm.gz." && [ "$loss" = "$first" ]
report "--cache on writes one"
cached
status_is 0 && err_has "cache     used: $tmp/spam.svm.gz." && [ "$loss" = "$first" ] &&
	grep -q '"cache": "used: ' "$tmp/cached/run.json"
report "it is used, with the same result"
gunzip -c "$tmp/spam.svm.gz" | head -n 500 | gzip -1 >"$tmp/shorter" && mv "$tmp/shorter" "$tmp/spam.svm.gz"
cached
status_is 0 && err_has "is of an earlier state of the data file" && err_has ": 500 rows"
report "but not for other data"
# a sample about every 50 ms, of threads that sleep 2 ms a step, 300 steps each: 12 on an idle machine, more on a busy one
sampled=$tmp/sampled
train --data $small --workers 2 --oversubscribe --protocol async-ring --straggler constant:0.002 --epochs 2 --eval-every 0 \
	--metrics-every 0.05 --sample-every 1 --estimate all --out "$sampled"
status_is 0 && are_json_lines "$sampled/metrics.jsonl" && [ "$(grep -c '"event":"sample"' "$sampled/metrics.jsonl")" -ge 3 ]
report "--metrics-every writes lines between evaluations"
grep '"event":"sample"' "$sampled/metrics.jsonl" >"$sampled/lines"
for key in steps epoch seconds running_loss train_loss consensus_distance examples examples_per_s staleness p50 p99 t_mix; do
	[ "$(grep -c "\"$key\":" "$sampled/lines")" -eq "$(wc -l <"$sampled/lines")" ] || break
done
report "every sample has the documented keys"
grep '"event":"sample"' "$sampled/metrics.jsonl" | tail -1 | grep -q '"probe":{"value"'
report "the last sample has the estimates"
train --data $small --workers 8 --engine sim --protocol sync-ring --target-tmix 4 --epochs 40 --out "$tmp/steered"
status_is 0 && err_has "t_mix to be kept at 4 rounds" &&
	grep -q '"event":"control","target":4.0,"unit":"rounds","measured":4.0,' "$tmp/steered/metrics.jsonl" &&
	has_keys "$tmp/steered/run.json" control mean_from_second windows actuator
report "--target-tmix writes its windows"

# --- repeating

train --data synth:quadratic,dim=4,rows=50 --workers 1 --seed 7 --trace "$tmp/one.trace" --out "$tmp/once"
sum=$(cat "$tmp/once/model.safetensors" "$tmp/one.trace" | cksum)
train --config "$tmp/once/run.json"
status_is 0 && [ "$(cat "$tmp/once/model.safetensors" "$tmp/one.trace" | cksum)" = "$sum" ]
report "--config of a run repeats it, and leaves its files alone"
train --config "$tmp/once/run.json" --out "$tmp/again"
status_is 0 && cmp -s <(tail -c 16 "$tmp/once/model.safetensors") <(tail -c 16 "$tmp/again/model.safetensors")
report "with an --out of its own: the same four parameters"

echo "1..$n"
