#!/bin/sh
# Runs after the files are gone. dpkg calls it with `remove` or `purge`, rpm with the number of versions left.
# The user stays: a file that still belongs to it must not come to belong to the next user that gets its number.
set -e

case "${1:-}" in
    purge) rm -rf /var/lib/longhaul /var/cache/longhaul /var/log/longhaul /run/longhaul /run/longhaul-host
        # The operator made these files, so the package does not delete them.
        if grep -rsq -e '-----BEGIN .*PRIVATE KEY-----' /etc/longhaul; then
            echo "longhaul: /etc/longhaul still has a private key. To delete it: rm -r /etc/longhaul"
        fi ;;
    remove | 0)
        for folder in /var/lib/longhaul /var/cache/longhaul /var/log/longhaul /run/longhaul /run/longhaul-host; do
            rmdir "$folder" 2>/dev/null || true    # what is in use or holds state stays
        done
        ;;
    *) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
