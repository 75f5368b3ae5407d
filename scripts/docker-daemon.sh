#!/usr/bin/env bash
# A Docker daemon of one's own, for tests: nothing of the machine's network is touched. Needs root and dockerd.
#     scripts/docker-daemon.sh start|stop   with its state in $PROPEL_DAEMON_FOLDER; its socket is docker.sock there
set -euo pipefail
folder="${PROPEL_DAEMON_FOLDER:?where the daemon keeps its state}"
socket="$folder/docker.sock"

answers() { [[ -S "$socket" ]] && curl -fsS --max-time 2 --unix-socket "$socket" http://docker/_ping 2>/dev/null | grep -q OK; }
running() { [[ -f "$folder/pid" && "$(cat "/proc/$(cat "$folder/pid")/comm" 2>/dev/null)" == dockerd ]]; }

case "${1:-}" in
  start)
    answers && exit 0
    mkdir -p "$folder"
    chmod 700 "$folder"
    running || rm -f "$folder/pid"
    setsid dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" --host "unix://$socket" \
      --bridge=none --iptables=false --ip6tables=false --log-level warn --shutdown-timeout 5 >>"$folder/log" 2>&1 </dev/null &
    for _ in $(seq 150); do
      answers && exit 0
      sleep 0.2
    done
    tail -5 "$folder/log" >&2
    exit 1
    ;;
  stop)
    running || exit 0
    pid="$(cat "$folder/pid")"
    kill -TERM "$pid"
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || exit 0
      sleep 0.1
    done
    kill -KILL "$pid"
    ;;
  *) echo "usage: docker-daemon.sh start|stop" >&2; exit 2 ;;
esac
