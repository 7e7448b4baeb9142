// `berth shell` and `berth exec -t`: connects this terminal with a command in a unit.

import type { TerminalOptions, Unit } from '@berth/sdk'
import { pairs, UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note, write } from '../output.ts'

export async function shell(context: Context): Promise<number> {
  const { args } = context
  const unit = await unitOf(context, args.args[0] ?? '')
  return await runInTerminal(context, unit, args.rest.length === 0 ? {} : { command: args.rest })
}

/** Answers the exit code of the command. `--workdir` and `--env` are looked at here. */
export async function runInTerminal(
  { args, signal, isJson }: Context,
  unit: Unit,
  asked: Pick<TerminalOptions, 'command'>,
): Promise<number> {
  const { stdin, stdout } = process
  if (isJson) throw new UsageError('A terminal has no JSON.')
  if (!stdin.isTTY || !stdout.isTTY)
    throw new Failure('Standard input and output are no terminal.', {
      hint: `berth exec ${unit.name} -- CMD…`,
      exitCode: exitCodes.ownFailure,
    })
  const workdir = args.text('workdir')
  const terminal = await unit.terminal({
    ...asked,
    ...(workdir === undefined ? {} : { cwd: workdir }),
    env: { TERM: process.env.TERM ?? 'xterm-256color', ...pairs(args.list('env')) },
    columns: stdout.columns,
    rows: stdout.rows,
    signal,
  })
  const onInput = (data: Buffer) => terminal.write(data)
  const onResize = () => terminal.resize(stdout.columns, stdout.rows)
  // Ctrl-C and the like go to the unit, as bytes.
  stdin.setRawMode(true).on('data', onInput)
  stdout.on('resize', onResize)
  try {
    for await (const { bytes } of terminal.output) await write(bytes, stdout)
    const { exitCode, timedOut } = await terminal.wait()
    if (!timedOut) return exitCode
    note('error: The terminal was open for as long as one may be.')
    return exitCodes.timedOut
  } finally {
    stdout.off('resize', onResize)
    stdin.off('data', onInput).setRawMode(false).pause()
  }
}
