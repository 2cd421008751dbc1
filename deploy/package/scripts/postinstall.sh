#!/bin/sh
# Runs after the files are in place. dpkg calls it with `configure [OLD VERSION]`, rpm with the number of versions.
set -e

config=/etc/longhaul/longhaul.yaml
program=/usr/lib/longhaul/longhaul

case "${1:-}" in
    configure) old=${2:-} ;;
    1) old= ;;
    [2-9]*) old=some ;;
    *) exit 0 ;;
esac

if ! getent passwd longhaul >/dev/null; then
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin longhaul
fi
install -d -o longhaul -g longhaul -m 0750 /var/lib/longhaul /var/cache/longhaul

# An installation starts nothing: the configuration has to be written first.
if [ -z "$old" ]; then
    echo "longhaul: fill in $config, or copy a file of 'longhaul pair init' there. Then: systemctl enable --now longhaul"
fi
if [ -d /run/systemd/system ]; then
    # Connections take the kernel's settings when they open, so these come before the service.
    /usr/lib/systemd/systemd-modules-load longhaul.conf || true
    /usr/lib/systemd/systemd-sysctl 60-longhaul.conf || true
    systemctl daemon-reload || true
    if [ -n "$old" ] && systemctl --quiet is-active longhaul.service; then
        if [ ! -e "$config" ] || "$program" check "$config" >/dev/null 2>&1; then
            # The packet rules are bound to the service: they go with it and come back when it is ready.
            systemctl restart longhaul.service || echo "longhaul: the restart failed: journalctl -u longhaul" >&2
        else
            echo "longhaul: this version refuses $config; the previous one keeps running." >&2
            echo "longhaul: see 'longhaul check $config', then run 'systemctl restart longhaul'." >&2
        fi
    fi
fi
