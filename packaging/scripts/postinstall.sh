#!/bin/sh
set -e
# The units are installed, not enabled.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
