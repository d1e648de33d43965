#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that this machine lacks.
# Usage: tools/setup.sh [SECTION...]     sections: build (the default), demo, slurm, testdata, full
set -euo pipefail
list="$(dirname "${BASH_SOURCE[0]}")/packages.txt"
sections=("$@")
[ $# -gt 0 ] || sections=(build)

fail() {
  printf 'setup: %s\n' "$1" >&2
  shift
  printf '       %s\n' "$@" >&2
  exit 1
}

# Prints "name<TAB>reason" for every package of the asked sections.
wanted() {
  awk -v asked=" ${sections[*]} " '
    /^\[/ { section = substr($0, 2, index($0, "]") - 2); next }
    NF && !/^#/ && index(asked, " " section " ") {
      name = $1; sub(/^[^#]*#[ \t]*/, ""); print name "\t" $0 }' "$list"
}

missing_packages() {
  local names
  names=$(wanted | cut -f1)
  # dpkg-query also fails for names it has never heard of: those are missing all the same.
  # shellcheck disable=SC2086
  { dpkg-query -W -f '${Package} ${db:Status-Status}\n' $names 2>/dev/null || true; } |
    awk -v names="$names" '$2 == "installed" { have[$1] }
      END { n = split(names, all, "\n"); for (i = 1; i <= n; ++i) if (!(all[i] in have)) print all[i] }'
}

reason_of() { wanted | awk -F '\t' -v name="$1" '$1 == name { print $2 }'; }

refuse_unknown_sections() {
  local section
  for section in "${sections[@]}"; do
    grep -qxF "[$section]" "$list" || fail "there is no section '$section' in $list" \
      "Sections: $(sed -n 's/^\[\(.*\)\]$/\1/p' "$list" | paste -sd' ')"
  done
}

# Names each package that no configured source offers.
refuse_unavailable() {
  local name lost=()
  for name in "$@"; do
    [[ $(LC_ALL=C apt-cache policy "$name") =~ Candidate:\ [^\(] ]] ||
      lost+=("$name: $(reason_of "$name")")
  done
  [ ${#lost[@]} -eq 0 ] || fail "not offered by this machine's package sources:" "${lost[@]}" \
    "Remedy: see that /etc/apt lists Debian 12 or 13 'main' for this release (and that" \
    "'apt-get update' works), or install these by other means; then run this again."
}

refuse_unknown_sections
command -v dpkg-query >/dev/null || fail "this is not a Debian system (no dpkg-query)" \
  "Remedy: use Debian 12 or 13, or install by hand: $(wanted | cut -f1 | paste -sd' ')"
mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are there (${sections[*]})"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "packages are missing, and this needs root or sudo" \
    "Remedy: ask an administrator to run" "apt-get install ${missing[*]}"
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
"${apt[@]}" update || fail "'apt-get update' failed: package lists cannot be read" \
  "Remedy: check the network and /etc/apt, then run this again. Still missing:" "${missing[*]}"
refuse_unavailable "${missing[@]}"
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null ||
  fail "'apt-get install' failed (its message is above). Still missing:" \
    "$(missing_packages | paste -sd' ')" \
    "Remedy: 'apt-get -f install' and 'apt-get update' mend most cases; then run this again."
mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] || fail "apt-get reported success, yet these are missing: ${missing[*]}" \
  "Remedy: run 'apt-get install ${missing[*]}' and read its output."
echo "setup: done"
