#!/bin/sh
# Node.js. `app` runs the application in /app: installs what package.json asks for, once for each version of that, and
# starts it by its script "start", else what "main" says, else the first of the usual names.
set -eu
[ "${1:-}" = app ] || exec "$@"
cd /app
fail() {
  echo "$1" >&2
  exit 1
}
if [ -f package.json ]; then
  locked=
  [ ! -f package-lock.json ] && [ ! -f npm-shrinkwrap.json ] || locked=yes
  for other in yarn.lock pnpm-lock.yaml bun.lock bun.lockb; do
    [ -n "$locked" ] || [ ! -f "$other" ] ||
      fail "npm installs here, and cannot go by $other: send package-lock.json too (npm install --package-lock-only), or no lock file."
  done
  asked=$(cat package.json package-lock.json npm-shrinkwrap.json 2>/dev/null | sha256sum)
  if [ "$(cat node_modules/.installed 2>/dev/null)" != "$asked" ]; then
    if [ -n "$locked" ]; then
      npm ci --no-audit --no-fund
    else
      npm install --no-audit --no-fund --no-package-lock
    fi || fail 'What package.json asks for could not be installed; npm says above why.'
    mkdir -p node_modules
    printf '%s\n' "$asked" >node_modules/.installed
  fi
  # All at once, quoted for this shell: each start of node takes a fifth of a second in a sandbox.
  said=$(
    node - <<'EOT'
const { main, scripts } = require('/app/package.json')
const quoted = (text) => `'${String(text ?? '').replaceAll("'", "'\\''")}'`
console.log(`main=${quoted(main)} start=${quoted(scripts?.start)} prestart=${quoted(scripts?.prestart)}`)
EOT
  )
  eval "$said"
  if [ -n "$start" ]; then
    [ -z "$prestart" ] || npm run prestart
    # Not by npm, which ends at SIGTERM at once and leaves what it has started no time to.
    export PATH="/app/node_modules/.bin:$PATH"
    exec bash -c "$start"
  fi
  [ -z "$main" ] || exec node .
fi
for file in server.js index.js app.js main.js server.mjs index.mjs; do
  [ ! -f "$file" ] || exec node "$file"
done
fail 'There is nothing to start: send package.json with a script "start", or server.js, index.js or app.js.'
