#!/bin/sh
set -e
# Debian says "remove", RPM how many versions stay: an upgrade stops nothing.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl stop 'locktop-worker@*.service' 'locktop-record@*.service' || true
    fi
    # Links of `systemctl enable`.
    rm -f /etc/systemd/system/*.wants/locktop-worker@*.service /etc/systemd/system/*.wants/locktop-record@*.service
fi
