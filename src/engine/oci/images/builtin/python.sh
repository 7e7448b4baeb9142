#!/bin/sh
# Python. `app` runs the application in /app: installs what requirements.txt or pyproject.toml asks for, once for each
# version of that, and starts the first file of the usual names.
set -eu
[ "${1:-}" = app ] || exec "$@"
cd /app
fail() {
  echo "$1" >&2
  exit 1
}
for other in uv.lock poetry.lock pdm.lock Pipfile.lock; do
  [ ! -f "$other" ] || [ -f requirements.txt ] ||
    fail "pip installs here, and cannot go by $other: send requirements.txt too (uv export, poetry export), or no lock file."
done
asked=
for file in requirements*.txt constraints*.txt pyproject.toml; do
  # Only then is a program started, which in a sandbox takes as long as all the rest.
  [ ! -f "$file" ] || asked=yes
done
[ -z "$asked" ] || asked=$(cat requirements*.txt constraints*.txt pyproject.toml 2>/dev/null | sha256sum)
if [ -n "$asked" ] && [ "$(cat .installed 2>/dev/null)" != "$asked" ]; then
  wanted=requirements.txt
  if [ ! -f "$wanted" ] && [ -f pyproject.toml ]; then
    # What it depends on. The application itself runs where it lies, and need not be a package.
    wanted=/tmp/requirements.txt
    python3 -c '
import tomllib
project = tomllib.load(open("pyproject.toml", "rb")).get("project", {})
print(*project.get("dependencies", []), sep="\n")' >"$wanted" || fail 'pyproject.toml cannot be read.'
  fi
  [ ! -f "$wanted" ] || pip install --no-input --disable-pip-version-check -r "$wanted" ||
    fail 'What the application asks for could not be installed; pip says above why.'
  printf '%s\n' "$asked" >.installed
fi
for file in main.py app.py server.py; do
  [ ! -f "$file" ] || exec python3 "$file"
done
fail 'There is nothing to start: send main.py, app.py or server.py.'
