// Starts a command in a directory of its machine. A shell of the helper in the machine enters the directory: a
// runtime could be led out of the machine by a path that a unit controls.

import { HELPER } from '../runtime/bundle.ts'

/**
 * For the helper's shell: goes to the directory $1, where that is not empty, and looks for the command $2, which is then in
 * `berth_command`, with the rest as its arguments. Calls `berth_finish` with 126 or 127 if there is none.
 */
// It is looked for by hand, in variables that no environment has: the helper's shell would run a tool of its own under the
// same name.
export const FIND_COMMAND = `if [ -n "$1" ] && ! cd "$1" 2>/dev/null; then
  echo "$1: cannot be the working directory" >&2
  berth_finish 126
fi
shift
case $1 in
  */*) berth_command=$1 ;;
  *)
    berth_command=
    berth_rest=\${PATH:-/usr/local/bin:/usr/bin:/bin}:
    while [ -n "$berth_rest" ]; do
      berth_directory=\${berth_rest%%:*}
      berth_rest=\${berth_rest#*:}
      [ -f "\${berth_directory:-.}/$1" ] && [ -x "\${berth_directory:-.}/$1" ] || continue
      berth_command=\${berth_directory:-.}/$1
      break
    done
    ;;
esac
if [ -z "$berth_command" ] || [ ! -e "$berth_command" ]; then
  echo "$1: command not found" >&2
  berth_finish 127
fi
if [ ! -f "$berth_command" ] || [ ! -x "$berth_command" ]; then
  echo "$1: cannot be executed" >&2
  berth_finish 126
fi
shift`

// What the shell has set for itself is not in the environment that was asked for.
const SCRIPT = `
berth_finish() { exit "$1"; }
berth_name=$2
${FIND_COMMAND}
unset PWD OLDPWD SHLVL
exec -a "$berth_name" "$berth_command" "$@"`

/** Returns the arguments that start a command in a directory. */
export function commandIn(cwd: string, argv: string[]): string[] {
  return [HELPER, 'sh', '-c', SCRIPT, 'exec', cwd, ...argv]
}
