dnl MW_NEED_PKG(VARIABLE-PREFIX, PKG-CONFIG SPEC, DEBIAN PACKAGE, WHAT IT IS FOR)
dnl MW_NEED_REPORT
dnl
dnl Look for a library by pkg-config. What is missing is collected, so that one run of configure names all of it, with
dnl one line to type. On success VARIABLE-PREFIX_CFLAGS and VARIABLE-PREFIX_LIBS are set, as PKG_CHECK_MODULES does.
AC_DEFUN([MW_NEED_PKG], [
PKG_CHECK_MODULES([$1], [$2], [], [MW_MISSING([$2], [$3], [$4])])
])

dnl MW_MISSING(WHAT, DEBIAN PACKAGE, WHAT IT IS FOR): note one thing that is missing.
AC_DEFUN([MW_MISSING], [
mw_missing="$mw_missing
  $1: $3"
mw_missing_apt="$mw_missing_apt $2"
])

AC_DEFUN([MW_NEED_REPORT], [
AS_IF([test -n "$mw_missing"], [AC_MSG_ERROR([libraries that mixwild needs were not found:
$mw_missing

On Debian or Ubuntu:
  apt-get install$mw_missing_apt
(elsewhere: the development packages of the same names; PKG_CONFIG_PATH tells where to look)])])
])
