# shellcheck shell=bash disable=SC2034,SC2154
# common.sh: what ./quickstart and ./check share: install what is missing, run a step quietly, tell what went wrong.
# Sourced with the repository's root as working directory.

export LC_ALL=C
bold='' plain=''
[ -t 1 ] && bold=$'\e[1m' plain=$'\e[0m'

die()
{
	echo "${0##*/}: $*" >&2
	exit 4
}

# Print the Debian packages that are missing. An argument is KIND:WHAT:PACKAGE, KIND one of command, pkg (a pkg-config
# module) or file.
missing_packages()
{
	local kind what package
	for item in "$@"; do
		IFS=: read -r kind what package <<<"$item"
		case $kind in
		command) command -v "$what" >/dev/null ;;
		pkg) command -v pkg-config >/dev/null && pkg-config --exists "$what" ;;
		file) compgen -G "$what" >/dev/null ;;
		esac || echo "$package"
	done | sort -u
}

build_needs=(command:gcc:gcc command:make:make command:autoconf:autoconf command:automake:automake
	command:pkg-config:pkg-config
	file:/usr/share/aclocal/ax_append_compile_flags.m4:autoconf-archive file:/usr/include/math.h:libc6-dev
	pkg:hwloc:libhwloc-dev pkg:jansson:libjansson-dev pkg:zlib:zlib1g-dev pkg:libisal:libisal-dev pkg:libpng:libpng-dev
	pkg:jemalloc:libjemalloc-dev pkg:openblas:libopenblas-dev pkg:lapacke:liblapacke-dev file:/usr/include/oneapi/dnnl/dnnl.h:libdnnl-dev
	pkg:cmocka:libcmocka-dev)

# Install what is missing of the given items; says what it does only when there is something to do.
install_missing()
{
	local packages sudo=()
	mapfile -t packages < <(missing_packages "$@")
	[ ${#packages[@]} -eq 0 ] && return
	command -v apt-get >/dev/null ||
		die "these are missing, and there is no apt-get here to install them (Debian's names): ${packages[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			die "not root and no sudo; please have this run: apt-get install --no-install-recommends ${packages[*]}"
		sudo=(sudo)
		[ -t 0 ] || sudo=(sudo -n)
	fi
	step "installing ${#packages[@]} packages" apt_install ||
		die "could not install; by hand: ${sudo[*]} apt-get install --no-install-recommends ${packages[*]}"
}

# The package lists of a fresh machine may be missing or stale: install, and if that fails, update and try again.
apt_install()
{
	local install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}")
	echo "${packages[*]}"
	"${install[@]}" || { "${sudo[@]}" apt-get update && "${install[@]}"; }
}

# step WHAT COMMAND...: run it with its output appended to $log; one line on the terminal; its log's tail if it fails.
step()
{
	local what=$1 t0=$EPOCHREALTIME from ret
	shift
	mkdir -p "$(dirname "$log")"
	touch "$log"
	from=$(wc -l <"$log")
	printf '  %-28s' "$what"
	{
		printf '\n==== %s: %s\n' "$what" "$*"
		"$@"
	} >>"$log" 2>&1 </dev/null
	ret=$?
	awk -v a="$t0" -v b="$EPOCHREALTIME" -v r="$ret" 'BEGIN { printf "%7.1f s%s\n", b - a, r ? "  FAILED" : "" }'
	[ "$ret" -eq 0 ] && return
	echo "---- the end of $log:"
	tail -n +$((from + 1)) "$log" | tail -n 40
	echo "----"
	return "$ret"
}

# ./configure has to be made when it is missing or older than what it is made from.
bootstrap_if_needed()
{
	[ -f configure ] && [ -f Makefile.in ] && [ ! configure.ac -nt configure ] &&
		[ ! Makefile.am -nt Makefile.in ] && return
	step bootstrap ./bootstrap
}
