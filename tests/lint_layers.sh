#!/usr/bin/env bash
# Who may include whom (HACKING.md, "Layout"): a TAP test a folder of src/. Plug-in families may read registry.def.
set -u
cd "${MW_SRCDIR:-.}" || exit 99

# folder: what its files may include, as an extended regular expression
rules='base:base/|\.\./include/mixwild\.h
topo:(base|topo)/
data:(base|data)/
sched:(base|sched)/
optim:(base|optim)/
model:(base|data|model)/
comm:(base|topo|comm)/
mixing:(base|mixing)/|comm/(plan|graph|protocol)\.h
run:[a-z]+/|registry\.h|\.\./include/mixwild\.h
cli:cli/|mixwild\.h'

n=0
while IFS=: read -r folder allowed; do
	n=$((n + 1))
	bad=$(grep -nE '^[ \t]*#[ \t]*include[ \t]*"' -r "src/$folder" --include='*.[ch]' |
		grep -vE "include[ \t]*\"(registry\.def\"|$allowed)")
	[ -z "$bad" ] && echo "ok $n - src/$folder includes only $allowed" && continue
	echo "not ok $n - src/$folder includes more than $allowed"
	while read -r line; do echo "# $line"; done <<<"$bad"
done <<<"$rules"
echo "1..$n"
