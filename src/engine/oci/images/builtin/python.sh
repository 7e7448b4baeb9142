#!/bin/sh
# Python. `app` runs the application in /app: installs what requirements.txt or pyproject.toml asks for, once for each
# version of that, and starts the first file of the usual names.
set -eu
[ "${1:-}" = app ] || exec "$@"
cd /app
asked=$(cat requirements.txt pyproject.toml 2>/dev/null | sha256sum)
if [ "$(cat .installed 2>/dev/null)" != "$asked" ]; then
  [ ! -f requirements.txt ] || pip install --no-input --disable-pip-version-check -r requirements.txt
  [ ! -f pyproject.toml ] || pip install --no-input --disable-pip-version-check .
  printf '%s\n' "$asked" >.installed
fi
for file in main.py app.py server.py; do
  [ ! -f "$file" ] || exec python3 "$file"
done
echo 'There is nothing to start: send main.py, app.py or server.py.' >&2
exit 1
