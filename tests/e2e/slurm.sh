#!/usr/bin/env bash
# usage: slurm.sh DAIS: the scheduler over a real Slurm of four nodes on this machine, which it starts
# and stops: a gang of four nodes, the same job file without Slurm, preemption and resumption, and a
# controller of Slurm that is killed right after it took jobs. Exit code 77 (skipped) without Slurm's
# programs or without root, which its daemons need.
set -euo pipefail
# Steps of Slurm that find their folders gone may crash: not into the caller's folder.
ulimit -c 0
dais=$(realpath "$1")
for program in slurmctld slurmd sbatch munged; do
  command -v $program >/dev/null || { echo "slurm.sh: no $program"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "slurm.sh: not root"; exit 77; }
work=$(mktemp -d /tmp/dais_slurm_XXXXXX)
chmod 755 "$work"
mkdir -p "$work"/{state,log,run,tmp.n1,tmp.n2,tmp.n3,tmp.n4,out,data}
port=$((21000 + $$ % 1000 * 10))

stop_all() {
  local file pid
  for file in "$work"/run/*.pid; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    # Only what this script started: its command line names the folder, or its own configuration.
    if grep -qz "$work" "/proc/$pid/environ" 2>/dev/null; then kill -9 "$pid" 2>/dev/null || true; fi
  done
  # Steps of Slurm outlive its daemons.
  for pid in $(pgrep slurmstepd || true); do
    if grep -qz "$work" "/proc/$pid/environ" 2>/dev/null; then kill -9 "$pid" 2>/dev/null || true; fi
  done
  rm -rf "$work"
}
trap 'stop_all 2>/dev/null' EXIT
# start NAME COMMAND...: in the background; it dies with this script, however that ends.
start() {
  local name=$1
  shift
  setpriv --pdeathsig KILL "$@" >>"$work/log/$name.out" 2>&1 &
  echo $! >"$work/run/$name.pid"
}
fail() {
  echo "slurm.sh: $*" >&2
  tail -n 5 "$work"/log/* >&2 || true
  "$dais" jobs --all >&2 || true
  squeue -t all -o '%i %j %T %r %N %k' >&2 || true
  sinfo -N -o '%N %T %E' >&2 || true
  exit 1
}
# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# ---- A cluster
for gpu in 0 1; do mknod -m 666 "$work/gpu$gpu" c 240 $gpu; done
head -c 1024 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
host=$(hostname -s)
cat >"$work/slurm.conf" <<CONF
ClusterName=dais
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$work/run/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$port
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.%n.log
TmpFS=$work/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=1
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=2048 Gres=gpu:fake:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
cat >"$work/gres.conf" <<CONF
AutoDetect=off
NodeName=n[1-4] Name=gpu Type=fake File=$work/gpu[0-1]
CONF
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$work/cgroup.conf"
export SLURM_CONF=$work/slurm.conf DAIS_HOME=$work/data DAIS_SLURM_TEST=$work
start munged munged --foreground --key-file="$work/munge.key" --socket="$work/run/munge.socket" --force \
  --pid-file="$work/munged.pid" --log-file="$work/log/munged.log" --seed-file="$work/munge.seed"
until_true 30 test -S "$work/run/munge.socket" || fail "munged does not start"
start slurmctld slurmctld -D -c
for node in n1 n2 n3 n4; do start slurmd.$node slurmd -D -N $node; done
all_idle() { [ "$(sinfo -h -N -o %T | grep -c '^idle$')" = 4 ]; }
until_true 60 all_idle || fail "the nodes do not come up"

start_dais() {
  start dais "$dais" up --executor slurm --patience 15s
  until_true 30 "$dais" jobs >/dev/null || fail "dais up does not answer"
}
start_dais
phase_of() { "$dais" job show "$1" --json | sed 's/.*"phase":"\([a-z]*\)".*/\1/'; }
reached() { [ "$(phase_of "$1")" = "$2" ]; }
number_of() { awk '{ print $2 }'; }
wait_for() { until_true "$3" reached "$1" "$2" || fail "job $1 is $(phase_of "$1"), not $2: $("$dais" why "$1")"; }

# ---- A gang of four nodes, and the same file without Slurm
cat >"$work/gang.yaml" <<JOB
name: gang
tasks: 4
gpus: 2
memory: 100MiB
folder: out
environment: {GREETING: "it's here"}
shell: echo "\$RANK/\$WORLD_SIZE \$CUDA_VISIBLE_DEVICES \$GREETING" > \$WHERE.\$RANK; echo "\${SLURMD_NODENAME:-none} \$MASTER_ADDR \$TF_CONFIG" >> nodes.\$WHERE; echo said \$RANK
JOB
gang=$("$dais" submit -f "$work/gang.yaml" --env WHERE=slurm | number_of)
wait_for "$gang" completed 60
[ "$(cut -d' ' -f1 "$work/out/nodes.slurm" | sort | paste -sd' ')" = "n1 n2 n3 n4" ] ||
  fail "the gang ran on $(cat "$work/out/nodes.slurm")"
grep -q '"index":3' "$work/out/nodes.slurm" || grep -q '"index": *3' "$work/out/nodes.slurm" || fail "no TF_CONFIG"
"$dais" logs "$gang" | grep -q '^said 0$' || fail "no log of the first task"
mkdir "$work/local"
start local env DAIS_HOME="$work/local" "$dais" up --gpus 8 --as-daemon --cpus 8 --memory 8GiB
until_true 30 env DAIS_HOME="$work/local" "$dais" jobs >/dev/null || fail "dais up does not answer"
same=$(DAIS_HOME=$work/local "$dais" submit -f "$work/gang.yaml" --env WHERE=local | number_of)
both_there() { [ "$(cat "$work"/out/local.? | wc -l)" = 4 ]; }
until_true 60 both_there || fail "the same file did not run without Slurm"
kill "$(cat "$work/run/local.pid")"
for rank in 0 1 2 3; do
  [ "$(cut -d' ' -f1,3- "$work/out/slurm.$rank")" = "$(cut -d' ' -f1,3- "$work/out/local.$rank")" ] ||
    fail "rank $rank saw other things: $(cat "$work/out/slurm.$rank") and $(cat "$work/out/local.$rank")"
  [ "$(cut -d' ' -f2 "$work/out/slurm.$rank")" = 0,1 ] || fail "rank $rank got the wrong GPUs"
done
echo "gang of four nodes: job $gang; the same file without Slurm: job $same"

# ---- Three tasks on nodes of two GPUs
uneven=$("$dais" submit --tasks 3 --gpus 1 --memory 100MiB --folder "$work/out" -- \
  sh -c 'echo $SLURMD_NODENAME >uneven.$RANK' | number_of)
wait_for "$uneven" completed 60
[ "$(sort "$work"/out/uneven.? | uniq -c | awk '{ print $1 }' | sort | paste -sd' ')" = "1 2" ] ||
  fail "three tasks went to $(cat "$work"/out/uneven.?)"

# ---- A job of an ordinary user is his, and so is all that it leaves
his() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ "$@"; }
mkdir -m 700 "$work/his" && chown 65534:65534 "$work/his"
mine=$(his "$dais" submit --tasks 2 --gpus 2 --memory 100MiB --snapshot --artefacts 'made.*' --folder "$work/his" -- \
  sh -c 'id -u; id -G; echo $USER $HOME; pwd; id -u >made.$RANK' | number_of)
wait_for "$mine" completed 60
his "$dais" logs "$mine" | paste -sd' ' | grep -q "^65534 65534 nobody .* $work/data/jobs/$mine/folder\$" ||
  fail "another user's job said $("$dais" logs "$mine" | paste -sd' ')"
kept() { [ "$(his "$dais" artefacts "$mine" | awk '{ print $2 }' | sort | paste -sd' ')" = "made.0 made.1" ]; }
until_true 20 kept || fail "of another user's job there is $("$dais" artefacts "$mine")"
attempt=$work/data/jobs/$mine/1
[ "$(stat -c '%u %a' "$attempt" "$attempt"/{batch,status,task0.log} | paste -sd,)" = "0 711,65534 600,65534 600,65534 600" ] ||
  fail "the files of another user's attempt: $(ls -la "$attempt")"
his ln -sf /etc/shadow "$attempt/task1.log" 2>/dev/null && fail "another user put a link into his attempt's folder"
his rm -f "$attempt/status" 2>/dev/null && fail "another user removed a file of his attempt"
his mkfifo "$attempt/more" 2>/dev/null && fail "another user made a pipe in his attempt's folder"
his cat "$work/data/jobs/$gang/1/task0.log" 2>/dev/null && fail "another user read a log of root"
long=$(his "$dais" submit --gpus 1 --memory 100MiB --grace 1s --folder "$work/his" -- \
  sh -c 'trap "" TERM; while :; do sleep 1; done' | number_of)
wait_for "$long" running 60
his "$dais" cancel "$long" >/dev/null
wait_for "$long" cancelled 60
echo "as an ordinary user: jobs $mine and $long"

# ---- Failures are told
bad=$("$dais" submit --tasks 2 --gpus 1 --memory 100MiB --folder "$work/out" -- \
  sh -c '[ $RANK = 1 ] && exit 7; sleep 30' | number_of)
wait_for "$bad" failed 60
"$dais" job show "$bad" | grep -q 'exit code 7 of task 1' || fail "a failure was told as $("$dais" job show "$bad")"

# ---- Preemption and resumption; the daemon is killed meanwhile
cat >"$work/count.sh" <<'SH'
n=$(cat count.$RANK 2>/dev/null || echo 0)
echo "begin $n" >>trace.$RANK
trap 'echo $n >count.$RANK; echo "saved $n" >>trace.$RANK; exit 0' TERM
while [ $n -lt 30 ]; do sleep 0.1; n=$((n + 1)); done
echo "done $n" >>trace.$RANK
SH
low=$("$dais" submit --name low --tasks 4 --gpus 2 --memory 100MiB --min-run 0.001s --grace 5s \
  --folder "$work/out" -- sh "$work/count.sh" | number_of)
begun() { [ "$(cat "$work"/out/trace.? | grep -c '^begin 0$')" = 4 ]; }
until_true 60 begun || fail "the low job did not begin: $("$dais" why "$low")"
kill -9 "$(cat "$work/run/dais.pid")"
start_dais
sleep 0.5
high=$("$dais" submit --name high --priority 100 --tasks 4 --gpus 1 --memory 100MiB \
  --folder "$work/out" -- sh -c 'ls trace.* >/dev/null; sleep 0.3' | number_of)
wait_for "$high" completed 60
wait_for "$low" completed 60
for rank in 0 1 2 3; do
  saved=$(awk '/^saved/ { print $2 }' "$work/out/trace.$rank")
  [ "${saved:-0}" -gt 0 ] || fail "rank $rank saved nothing: $(cat "$work/out/trace.$rank")"
  [ "$(paste -sd, "$work/out/trace.$rank")" = "begin 0,saved $saved,begin $saved,done 30" ] ||
    fail "rank $rank went $(paste -sd, "$work/out/trace.$rank")"
done
echo "preempted by job $high after $saved steps and resumed: job $low"

# ---- An elastic job goes on at the sizes that there is room for
elastic=$("$dais" submit --name elastic --tasks 8 --min-tasks 2 --gpus 1 --memory 100MiB --min-run 0.001s \
  --grace 5s --folder "$work/out" -- \
  sh -c 'trap "exit 0" TERM; echo $WORLD_SIZE >>size.$RANK; while :; do sleep 0.1; done' | number_of)
sizes() { [ "$(paste -sd, "$work/out/size.0")" = "$1" ]; }
until_true 60 sizes 8 || fail "the elastic job did not begin with 8 tasks: $("$dais" why "$elastic")"
urgent=$("$dais" submit --priority 100 --tasks 3 --gpus 2 --memory 100MiB --folder "$work/out" -- \
  sh -c 'until [ "$(paste -sd, size.0)" = 8,2 ]; do sleep 0.1; done' | number_of)
until_true 60 sizes 8,2 || fail "the elastic job did not shrink to 2: $(paste -sd, "$work/out/size.0")"
wait_for "$urgent" completed 60
until_true 60 sizes 8,2,8 || fail "the elastic job did not grow again: $(paste -sd, "$work/out/size.0")"
"$dais" cancel "$elastic" >/dev/null
wait_for "$elastic" cancelled 60
echo "elastic: job $elastic ran with 8, 2 and 8 tasks"

# ---- What somebody cancels in Slurm stays cancelled; what a node cannot start is started again
busy=$(sbatch --parsable --nodes=4 --gpus-per-node=2 --chdir=/ --output=/dev/null --wrap 'sleep 60')
in_slurm() { squeue -h -n "dais-$1" -o %i | grep -q .; }
final=$("$dais" submit --gpus 1 --memory 100MiB --folder "$work/out" -- true | number_of)
until_true 30 in_slurm "$final" || fail "Slurm did not get job $final"
scancel -n "dais-$final"
wait_for "$final" failed 60
scancel "$busy"
until_true 30 all_idle || fail "job $busy does not end"
for node in n1 n2 n3 n4; do mv "$work/spool.$node" "$work/kept.$node" && : >"$work/spool.$node"; done
again=$("$dais" submit --gpus 1 --memory 100MiB --folder "$work/out" -- sh -c 'echo x >>again' | number_of)
refused() { "$dais" job show "$again" | grep -q 'could not start it on its nodes'; }
until_true 60 refused || fail "a node without a spool folder started job $again"
for node in n1 n2 n3 n4; do rm "$work/spool.$node" && mv "$work/kept.$node" "$work/spool.$node"; done
wait_for "$again" completed 60
[ "$(wc -l <"$work/out/again")" = 1 ] || fail "job $again ran more than once"
echo "cancelled in Slurm: job $final; started again after its node could not: job $again"

# ---- Slurm's controller is killed within a second of taking jobs
ids=()
for i in 1 2 3 4 5; do
  ids+=("$("$dais" submit --name "lost$i" --gpus 1 --memory 100MiB --folder "$work/out" -- \
    sh -c "echo x >>ran.$i; sleep 0.2" | number_of)")
done
known() { [ "$(squeue -h -t all -o '%j' | grep -cE "^dais-($(IFS='|'; echo "${ids[*]}"))$")" = 5 ]; }
until_true 30 known || fail "Slurm did not get the jobs"
kill -9 "$(cat "$work/run/slurmctld.pid")"
sleep 0.3
start slurmctld slurmctld -D
left() { squeue -h -t all -o '%j' | sort -u >"$work/left"; }
until_true 30 left || fail "slurmctld does not come back"
lost=$((5 - $(grep -cE "^dais-($(IFS='|'; echo "${ids[*]}"))$" "$work/left" || true)))
# Each try on a node whose places slurmctld lost takes as long as the patience.
for id in "${ids[@]}"; do wait_for "$id" completed 240; done
# One that had begun was ended by Slurm, which did not know it any more, and began again.
for i in 1 2 3 4 5; do
  [ "$(wc -l <"$work/out/ran.$i")" -le 2 ] || fail "job ${ids[$((i - 1))]} ran $(wc -l <"$work/out/ran.$i") times"
done
echo "slurmctld killed: Slurm forgot $lost of 5 jobs, dais lost none"
