// What runs in the machine beside a background process: a shell of the helper that begins it, waits for it, and says on a
// pipe of its own which process it is and how it ended. So nobody on the host has to be its parent, in either class, and
// its end is known to an engine that did not begin it. Whoever tampers with it harms their own machine.

import { HELPER, type Process } from '../runtime/bundle.ts'

// Signals for the group reach the shell, too: it passes over them, and its child, in which traps are undone, does not.
// The command is looked for by hand, in variables that no environment has: the helper's shell would run a tool of its own under the same name.
const SCRIPT = `
trap : HUP INT QUIT USR1 USR2 TERM
echo "pid $$" >&3
berth_finish() { echo "exit $1" >&3; exit "$1"; }
if [ -n "$1" ] && ! cd "$1" 2>/dev/null; then
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
shift
"$berth_command" "$@" 3>&-
berth_finish $?`

export type Wrapped = { argv: string[]; env: Record<string, string>; cwd: string | null; marker: string }

/** The description of the wrapped command for the runtime, as the machine's own user. */
export function wrappedProcess(main: Process, { argv, env, cwd, marker }: Wrapped): Process {
  const inherited = main.env.filter((entry) => !Object.hasOwn(env, entry.split('=')[0] ?? ''))
  const own = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  return {
    ...main,
    args: [HELPER, 'sh', '-c', SCRIPT, 'process', cwd ?? '', ...argv],
    env: [...inherited, ...own, marker],
  }
}

export type Report = { pid: number | null; exitCode: number | null }

/** Of what was said so far; whatever else somebody writes there is passed over. */
export function readReport(said: string): Report {
  const pid = /^pid (\d{1,7})$/m.exec(said)?.[1]
  const code = /^exit (\d{1,3})$/m.exec(said)?.[1]
  return { pid: pid === undefined ? null : Number(pid), exitCode: code === undefined ? null : Number(code) }
}
