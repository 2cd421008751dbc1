#!/bin/sh
# balance.sh SHARED EDGE...: spreads the connections to the address SHARED over those edges that are ready. Run it on the router.
# A connection keeps its edge, also while that edge drains. The rules are in the table `longhaul_fleet` of nftables; `--undo` removes
# them and the routes.
set -eu
FIRST_TABLE=1001
undo() {
  nft delete table ip longhaul_fleet 2>/dev/null || :
  while ip rule delete priority 1000 2>/dev/null; do :; done
}
undo
[ "$1" != --undo ] || exit 0
shared=$1
shift
# Each edge has a mark and a table of routes.
number=0
for edge in "$@"; do
  ip route replace default via "$edge" table $((FIRST_TABLE + number))
  ip rule add priority 1000 fwmark $((FIRST_TABLE + number)) lookup $((FIRST_TABLE + number))
  number=$((number + 1))
done
nft -f - <<RULES
table ip longhaul_fleet {
  chain choose { }
  chain prerouting {
    type filter hook prerouting priority mangle
    ip daddr $shared ct state new jump choose
    ip daddr $shared meta mark set ct mark
  }
}
RULES
chosen=none
while :; do
  ready= count=0 number=0
  for edge in "$@"; do
    if curl --silent --fail --output /dev/null --max-time 1 "http://$edge:9902/ready"; then
      ready="$ready${ready:+, }$count : $((FIRST_TABLE + number))"
      count=$((count + 1))
    fi
    number=$((number + 1))
  done
  # With no edge that is ready, the last choice stays.
  if [ "$count" -gt 0 ] && [ "$ready" != "$chosen" ]; then
    nft -f - <<RULES
flush chain ip longhaul_fleet choose
add rule ip longhaul_fleet choose meta l4proto { tcp, udp } ct mark set jhash ip saddr . th sport mod $count map { $ready }
RULES
    chosen=$ready
    echo "$count of $# edges serve $shared"
  fi
  sleep 1
done
