// What runs in the machine beside a background process: a shell of the helper that begins it, waits for it, and says on a
// pipe of its own which process it is and how it ended. So nobody on the host has to be its parent, in either class, and
// its end is known to an engine that did not begin it. Whoever tampers with it harms their own machine.

import { FIND_COMMAND } from '../exec/find-command.ts'
import { HELPER, type Process, withEnv } from '../runtime/bundle.ts'

// Signals for the group reach the shell, too: it passes over them, and its child, in which traps are undone, does not.
const SCRIPT = `
trap : HUP INT QUIT USR1 USR2 TERM
echo "pid $$" >&3
berth_finish() { echo "exit $1" >&3; exit "$1"; }
${FIND_COMMAND}
"$berth_command" "$@" 3>&-
berth_finish $?`

export type Wrapped = { argv: string[]; env: Record<string, string>; cwd: string | null; marker: string }

/** The description of the wrapped command for the runtime, as the machine's own user. */
export function wrappedProcess(main: Process, { argv, env, cwd, marker }: Wrapped): Process {
  return {
    ...main,
    args: [HELPER, 'sh', '-c', SCRIPT, 'process', cwd ?? '', ...argv],
    env: [...withEnv(main.env, env), marker],
  }
}

export type Report = { pid: number | null; exitCode: number | null }

/** Of what was said so far; whatever else somebody writes there is passed over. */
export function readReport(said: string): Report {
  const pid = /^pid (\d{1,7})$/m.exec(said)?.[1]
  const code = /^exit (\d{1,3})$/m.exec(said)?.[1]
  return { pid: pid === undefined ? null : Number(pid), exitCode: code === undefined ? null : Number(code) }
}
