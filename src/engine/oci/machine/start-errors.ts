// Explains why a start failed: to the caller only what concerns the caller's own command, to the log everything.

import { EngineError } from '../../errors.ts'
import type { EngineContext } from './context.ts'

/** Messages of runtimes, and what they mean for the caller's command. The first match wins. */
const reasons: { pattern: RegExp; say: (command: string, cwd: string) => string; kind?: 'start_refused' }[] =
  [
    {
      pattern: /executable file not found|no such file or directory|file does not exist|failed to load/i,
      say: (command) => `The command "${command}" was not found in the image.`,
    },
    {
      pattern: /permission denied|not executable/i,
      say: (command) => `The command "${command}" may not be executed: it lacks the permission.`,
    },
    {
      pattern: /exec format error/i,
      say: (command) => `The command "${command}" is not a program for this machine's architecture.`,
    },
    {
      pattern: /not a directory/i,
      kind: 'start_refused',
      say: (_, cwd) =>
        `The working directory ${cwd}, or another that the machine needs, cannot be made: a file or a link on its disk is in the way.`,
    },
    { pattern: /mount/i, say: () => 'A directory that the machine needs cannot be mounted in this image.' },
  ]

export function explainStartFailure(
  host: EngineContext,
  { args, cwd }: { args: string[]; cwd: string },
  reason: string,
): EngineError {
  host.log.warn({ reason: reason.slice(0, 2000) }, 'machine could not be started')
  const command = (args[0] ?? '').slice(0, 200)
  const known = reasons.find(({ pattern }) => pattern.test(reason))
  const text = known?.say(command, cwd.slice(0, 200)) ?? 'The runtime could not start the machine.'
  return new EngineError(known?.kind ?? 'start_failed', text, { cause: reason })
}
