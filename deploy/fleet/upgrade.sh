#!/bin/sh
# upgrade.sh ADDRESS:PORT...: restarts boxes, one after the other. Each argument is the health endpoint of a box.
# RESTART names the command that upgrades and restarts a box, and returns when the old process has ended. Its argument is the endpoint.
set -eu
: "${RESTART:?is not set: name the command that restarts a box}"
: "${TIMEOUT:=180}"
ready() { curl --silent --fail --output /dev/null --max-time 2 "http://$1/ready"; }
for box in "$@"; do
  ready "$box" || { echo "$box is not ready. Repair it before you upgrade others" >&2; exit 1; }
done
for box in "$@"; do
  "$RESTART" "$box"
  waited=0
  until ready "$box"; do
    [ "$waited" -lt "$TIMEOUT" ] || { echo "$box is not ready after $TIMEOUT s. The boxes after it were not restarted" >&2; exit 1; }
    sleep 1
    waited=$((waited + 1))
  done
  echo "$box is ready"
done
