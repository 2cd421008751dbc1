#!/bin/sh
# Runs before the files go. dpkg calls it with `remove` or `upgrade VERSION`, rpm with the number of versions left.
# An upgrade leaves the service and the packet rules alone.
set -e

case "${1:-}" in
    remove | 0) ;;
    *) exit 0 ;;
esac

if command -v systemctl >/dev/null; then
    # Without a running systemd this only removes the links below /etc/systemd/system.
    for link in /etc/systemd/system/*.wants/longhaul-host@*.service; do
        [ -L "$link" ] || continue
        unit=${link##*/}
        if [ -d /run/systemd/system ]; then systemctl stop "$unit" || true; fi
        systemctl --quiet disable "$unit" || true
    done
    if [ -d /run/systemd/system ]; then systemctl stop 'longhaul-host@*.service' longhaul.service || true; fi
    systemctl --quiet disable longhaul.service || true
fi

# Rules applied by hand, or where no systemd runs, would send clients to a proxy that is gone.
for record in /run/longhaul/host.json /run/longhaul-host/*.json; do
    [ -e "$record" ] || continue
    if ! /usr/lib/longhaul/longhaul host --undo --record "$record"; then
        echo "longhaul: 'longhaul host --undo' failed; 'nft delete table inet longhaul' removes the packet rules." >&2
    fi
done
