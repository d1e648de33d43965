#!/usr/bin/env bash
# Proves that the repository builds and passes its tests on a Debian that has nothing installed:
# makes a minimal root, clones HEAD into it and runs a command there. See --help.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
repository=$(dirname "$(dirname "$self")")

usage() {
  cat <<'TEXT'
Usage: tools/fresh_root.sh [bookworm|trixie] [--command CMD] [--user] [--keep]
Makes a Debian root with debootstrap --variant=minbase in a temporary folder, clones the commit that
is checked out into it and runs CMD there (default ./test.sh). Needs root or sudo, about 4 GB under
$TMPDIR (default /tmp), and debootstrap (tools/setup.sh full).

  bookworm       Debian 12 (the default)
  trixie         Debian 13
  --command CMD  what to run in the clone, for example './demo.sh'
  --user         run it as an ordinary user with sudo instead of root
  --keep         leave the root in place and print where it is

Package sources and network settings are those of this machine's apt, with the release changed.
Exit code: that of CMD; 2 for wrong usage.
TEXT
}

fail() {
  printf 'fresh_root: %s\n' "$@" >&2
  exit 1
}

suite=bookworm command=./test.sh user=root keep=no inside=no arguments=("$@")
while [ $# -gt 0 ]; do
  case $1 in
    bookworm | trixie) suite=$1 ;;
    --command) [ $# -gt 1 ] || { usage >&2; exit 2; }; command=$2; shift ;;
    --user) user=builder ;;
    --keep) keep=yes ;;
    --inside) inside=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "fresh_root: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

# Debian repositories of this machine's apt: "URI RELEASE COMPONENT" with the release changed.
host_sources() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  command -v apt-get >/dev/null || return 0
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' 2>/dev/null |
    awk -v host="$codename" -v suite="$suite" '
      $1 == "Debian" && index($3, host) == 1 {
        print $2, suite substr($3, length(host) + 1), $4 }' | sort -u
}

# Proxy, retry and clock settings of this machine's apt, in the form of its configuration file.
host_settings() {
  command -v apt-config >/dev/null || return 0
  apt-config dump --no-empty |
    grep -E '^Acquire::(http|https|Check-|Retries|ForceIPv4)' || true
}

make_root() {
  local sources mirror proxy
  sources=$(host_sources)
  mirror=$(awk -v suite="$suite" '$2 == suite { print $1; exit }' <<<"$sources")
  proxy=$(host_settings | sed -n 's/^Acquire::http::Proxy "\(.*\)";$/\1/p')
  # Without a mirror debootstrap takes its own default.
  ${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase "$suite" "$root" \
    ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; fail "debootstrap could not make a $suite root"; }
  [ -z "$sources" ] || sed 's/^/deb /' <<<"$sources" >"$root/etc/apt/sources.list"
  host_settings >"$root/etc/apt/apt.conf.d/90host"
  cp /etc/hosts /etc/resolv.conf "$root/etc/"
}

# Runs in a mount and process namespace of its own: whatever is mounted or started here ends with it,
# so that the folder can be removed afterwards without reaching through a mount.
inside_namespace() {
  root=$inside
  echo "fresh_root: debootstrap of $suite"
  make_root
  mount -t proc proc "$root/proc"
  mount --rbind -o ro /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  local home=/root
  if [ "$user" != root ]; then
    home=/home/$user
    chroot "$root" /bin/bash -ec "apt-get -q update && apt-get -q install -y \
      --no-install-recommends sudo && useradd -m -s /bin/bash $user &&
      echo '$user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$user" >>"$root.log" 2>&1 ||
      { tail -n 20 "$root.log" >&2; fail "could not add a user with sudo to the root"; }
  fi
  git clone --quiet "$repository" "$root$home/dais"
  chroot "$root" chown -R "$user:" "$home/dais"
  echo "fresh_root: $suite as $user: $command"
  chroot "$root" su "$user" -s /bin/bash -c "cd $home/dais && exec env -i HOME=$home USER=$user \
    LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /bin/bash -c $(printf %q "$command")" </dev/null
}

if [ "$inside" != no ]; then
  inside_namespace
  exit
fi

if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "a chroot needs root or sudo" "Remedy: run this as root"
  exec sudo "$self" "${arguments[@]}"
fi
for program in debootstrap unshare git; do
  command -v "$program" >/dev/null || fail "'$program' is missing" \
    "Remedy: apt-get install debootstrap util-linux git (or tools/setup.sh full)"
done
[ -z "$(git -C "$repository" status --porcelain)" ] ||
  echo "fresh_root: note: uncommitted changes are not part of the clone"

folder=$(mktemp -d "${TMPDIR:-/tmp}/dais-$suite-XXXXXX")
chmod 755 "$folder"
remove_root() {
  if [ $keep = yes ]; then
    echo "fresh_root: the root is kept in $folder/root"
  elif grep -q " $folder/" /proc/self/mountinfo; then
    echo "fresh_root: something is mounted under $folder: unmount it, then remove the folder" >&2
  else
    rm -rf --one-file-system "$folder"
  fi
}
# unshare blocks softer signals; its death takes everything inside along.
interrupt() {
  trap - INT TERM HUP
  [ -z "$namespace" ] || { kill -KILL "$namespace"; sleep 1; }
  exit "$1"
}
namespace=
trap remove_root EXIT
trap 'interrupt 130' INT
trap 'interrupt 143' TERM HUP
mkdir "$folder/root"

# In the background, because a shell handles signals only while it waits by itself.
start=$SECONDS status=0
unshare --mount --propagation private --pid --fork --kill-child \
  "$self" "${arguments[@]}" --inside "$folder/root" </dev/null &
namespace=$!
wait "$namespace" || status=$?
outcome=passed
[ $status -eq 0 ] || outcome="FAILED with exit code $status"
echo "fresh_root: $suite: $outcome after $((SECONDS - start)) s"
exit $status
