// `berth exec`: streams the output of a command, and exits with its exit code. Ctrl-C also ends the command in the
// unit.

import type { SpawnOptions, Unit } from '@berth/sdk'
import { type Args, milliseconds, pairs, UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { readInput } from '../input.ts'
import { note, printJson, write } from '../output.ts'
import { runInTerminal } from './shell.ts'

const MAX_INPUT = 1_048_576

export async function exec(context: Context): Promise<number> {
  const { args } = context
  if (args.rest.length === 0) throw new UsageError('There is no command: berth exec UNIT -- CMD…')
  if (args.flag('tty')) return await runInTerminal(context, args.rest)
  const [workdir, user] = [args.text('workdir'), args.text('user')]
  const asked = {
    ...spawnOptions(args),
    ...(user === undefined ? {} : { user }),
    ...(workdir === undefined ? {} : { cwd: workdir }),
    ...(args.list('env').length === 0 ? {} : { env: pairs(args.list('env')) }),
  }
  return await runIn(context, await unitOf(context, args.args[0] ?? ''), args.rest, asked)
}

/** `--timeout`. Throws UsageError. */
export function spawnOptions(args: Args): SpawnOptions {
  const timeout = args.text('timeout')
  return timeout === undefined ? {} : { timeoutMs: milliseconds(timeout) }
}

/** Answers the exit code of the command. `--interactive` is looked at here. */
export async function runIn(
  context: Context,
  unit: Unit,
  cmd: string[],
  asked: SpawnOptions,
): Promise<number> {
  const { args, signal, isJson } = context
  const options: SpawnOptions = {
    ...asked,
    signal,
    ...(args.flag('interactive') ? { stdin: await standardInput() } : {}),
  }
  if (isJson) {
    const result = await unit.exec(cmd, options)
    await printJson(result)
    return result.timedOut ? exitCodes.timedOut : result.exitCode
  }
  const command = unit.spawn(cmd, options)
  for await (const { stream, bytes } of command.output) await write(bytes, process[stream])
  const { exitCode, timedOut } = await command.wait()
  if (!timedOut) return exitCode
  note('error: The command ran out of its time and was killed.\ntry: --timeout 1h')
  return exitCodes.timedOut
}

async function standardInput(): Promise<string> {
  const bytes = await readInput(MAX_INPUT)
  if (bytes.length > MAX_INPUT)
    throw new Failure('Standard input is longer than 1 MB.', { hint: 'berth cp, in parts' })
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Failure('Standard input is no UTF-8.', { hint: 'berth cp FILE UNIT:/path' })
  }
}
