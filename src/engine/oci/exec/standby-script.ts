// The script with which a standby becomes a command (standby.ts). The helper's shell reads it, sets the command's
// environment, and becomes what starts a command in a directory (start.c). Pure.
//
// The command must not be able to tell that the runtime did not start it. Where a shell would behave differently
// there is no script, and the runtime starts the command.

import { commandIn } from '../machine-programs/start.ts'

/** Where a standby finds what will be the command's standard input; its own is the script. */
export const COMMAND_STDIN_FD = 3

/** Less than a pipe holds, so that it is written whole whatever the standby does. */
const MAX_BYTES = 32 * 1024

/** The shell drops variables with other names. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
/** The shell has them for itself: it changes them, or refuses some of their values. */
const SHELLS_OWN = new Set([
  'BASH_XTRACEFD',
  'ENV',
  'FUNCNAME',
  'HISTFILE',
  'IFS',
  'LINENO',
  'OLDPWD',
  'OPTIND',
  'PPID',
  'PS4',
  'PWD',
  'RANDOM',
  'SHLVL',
])

export type StandbyCommand = {
  /** With the program's name first. */
  argv: string[]
  /** The whole environment, as `NAME=value`. */
  env: string[]
  cwd: string
  hasStdin: boolean
}

/** Returns null if only the runtime can start the command exactly. */
export function standbyScript({ argv, env, cwd, hasStdin }: StandbyCommand): string | null {
  const [name = ''] = argv
  const variables = env.map(splitVariable)
  const isPlain = variables.every(([variable]) => VARIABLE.test(variable) && !SHELLS_OWN.has(variable))
  if (name === '' || !cwd.startsWith('/') || !isPlain) return null
  const exported = variables.map(([variable, value]) => `export ${variable}=${quoted(value)}`)
  const input = hasStdin ? `<&${COMMAND_STDIN_FD}` : '</dev/null'
  const words = commandIn(cwd, argv).map(quoted).join(' ')
  const script = `unset PATH SHLVL
${exported.join('\n')}
unset PWD OLDPWD
exec ${words} ${input} ${COMMAND_STDIN_FD}<&-
`
  return Buffer.byteLength(script) <= MAX_BYTES ? script : null
}

function splitVariable(entry: string): [string, string] {
  const at = entry.indexOf('=')
  return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
