#!/usr/bin/env bash
# Run one cmocka program and make its output TAP that automake's driver understands: cmocka 1.1 prints a plan for every
# group of a program and "not ok # SKIP" for a skipped test. Here: one plan at the end, tests numbered through, skips ok.
# Exit status: 0 when the program's own status only says how many tests failed, else the program's status (a crash, a
# sanitizer's report).
set -u -o pipefail

"$@" | awk '
	/^1\.\.[0-9]+/ { planned += substr($1, 4); next }
	/^(not )?ok [0-9]+/ {
		n++
		failed = $1 == "not"
		text = $0
		sub(/^(not )?ok [0-9]+ *-? */, "", text)
		if (sub(/^# SKIP */, "", text)) {
			failed = 0
			text = text " # SKIP"
		}
		n_failed += failed
		print (failed ? "not ok " : "ok ") n " - " text
		next
	}
	{ print }
	END {
		print "1.." planned + 0
		fflush()
		exit n_failed > 99 ? 99 : n_failed
	}'
status=("${PIPESTATUS[@]}")
[ "${status[0]}" = "${status[1]}" ] && exit 0
exit "${status[0]}"
