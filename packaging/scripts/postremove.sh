#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
# Recordings stay after a removal, as any data does, and go with a purge.
if [ "$1" = purge ]; then
    rm -rf /var/lib/private/locktop /var/lib/locktop
fi
