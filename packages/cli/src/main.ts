#!/usr/bin/env node
// `berth`: finds the command, loads its file alone, and ends with its code.

import module from 'node:module'
import { readArgs, splitWords } from './args.ts'
import { findCommand } from './commands.ts'
import { loadCommand } from './load-command.ts'

// Compiled code is kept between calls (Node 22.8 and newer).
module.enableCompileCache?.()

// The reader may stop early: `berth logs -f web | head`.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

/** As a shell tells of a program that a signal ended. */
const signalCodes = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 }

// Not awaited here: a single executable is one script, which has no await of its own.
void main(process.argv.slice(2)).then((code) => void (process.exitCode = code))

async function main(words: string[]): Promise<number> {
  if (words[0] === '--version' || words[0] === '-v') {
    process.stdout.write(`${(await import('./context.ts')).version}\n`)
    return 0
  }
  const [command, rest] = findCommand(words)
  if (!command) return await (await import('./help.ts')).helpOrUnknown(rest)
  const { contextOf } = await import('./context.ts')
  const interrupted = new AbortController()
  try {
    const args = readArgs(command, rest)
    if (args.flag('help')) return await (await import('./help.ts')).printHelp(command)
    for (const [name, code] of Object.entries(signalCodes))
      process.on(name, () => {
        // The second one leaves at once.
        if (interrupted.signal.aborted) process.exit(code)
        interrupted.abort(code)
      })
    const handler = await loadCommand(command.name)
    return (await handler(contextOf(args, interrupted.signal))) ?? 0
  } catch (error) {
    if (interrupted.signal.aborted) return Number(interrupted.signal.reason)
    // The arguments may be what is wrong.
    const isJson = splitWords(command, rest)[0].includes('--json')
    return (await import('./failure.ts')).tell(error, command.name, isJson)
  }
}
