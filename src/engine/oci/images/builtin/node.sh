#!/bin/sh
# Node.js. `app` runs the application in /app: installs what package.json asks for, once for each version of that, and
# starts it by its script "start", else what "main" says, else the first of the usual names.
set -eu
[ "${1:-}" = app ] || exec "$@"
cd /app
if [ -f package.json ]; then
  asked=$(cat package.json package-lock.json npm-shrinkwrap.json 2>/dev/null | sha256sum)
  if [ "$(cat node_modules/.installed 2>/dev/null)" != "$asked" ]; then
    if [ -f package-lock.json ] || [ -f npm-shrinkwrap.json ]; then
      npm ci --no-audit --no-fund
    else
      npm install --no-audit --no-fund --no-package-lock
    fi
    mkdir -p node_modules
    printf '%s\n' "$asked" >node_modules/.installed
  fi
  has() { node -e "process.exit($1 ? 0 : 1)"; }
  ! has 'require("/app/package.json").scripts?.start' || exec npm start
  ! has 'require("/app/package.json").main' || exec node .
fi
for file in server.js index.js app.js main.js server.mjs index.mjs; do
  [ ! -f "$file" ] || exec node "$file"
done
echo 'There is nothing to start: send package.json with a script "start", or server.js, index.js or app.js.' >&2
exit 1
