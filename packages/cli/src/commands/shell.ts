// `berth shell` and `berth exec -t`: connects this terminal with a command in a unit.

import type { Exit, Terminal, TerminalOptions, Unit } from '@berth/sdk'
import { pairs, UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note, write } from '../output.ts'
import { makeRaw } from '../raw-terminal.ts'

export async function shell(context: Context): Promise<number> {
  const { rest } = context.args
  return await runInTerminal(context, rest, context.args.text('session'))
}

/** Answers the exit code of the command. `--workdir`, `--user` and `--env` are looked at here. */
export async function runInTerminal(
  context: Context,
  command: readonly string[],
  session?: string,
): Promise<number> {
  const [word = ''] = context.args.args
  const options = { ...terminalOptions(context, command), ...(session === undefined ? {} : { session }) }
  checkTerminal(context, `exec ${word}`)
  return await terminalIn(context, await unitOf(context, word), options)
}

export function terminalOptions({ args }: Context, command: readonly string[]): TerminalOptions {
  const [workdir, user] = [args.text('workdir'), args.text('user')]
  return {
    ...(command.length === 0 ? {} : { command: [...command] }),
    ...(user === undefined ? {} : { user }),
    ...(workdir === undefined ? {} : { cwd: workdir }),
    env: { TERM: process.env.TERM ?? 'xterm-256color', ...pairs(args.list('env')) },
  }
}

/** Throws where this is no place for a terminal, before anything is made. `instead`: the command without one. */
export function checkTerminal({ isJson }: Context, instead: string): void {
  if (isJson) throw new UsageError('A terminal has no JSON.')
  if (typeof WebSocket === 'undefined')
    throw new Failure(`A terminal needs Node 22 or newer, and this is Node ${process.versions.node}.`, {
      hint: `berth ${instead} -- CMD…, which works with this one`,
    })
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new Failure('Standard input and output are no terminal.', { hint: `berth ${instead} -- CMD…` })
}

/** Answers the exit code of the command. */
export async function terminalIn({ signal }: Context, unit: Unit, options: TerminalOptions): Promise<number> {
  const { columns, rows } = process.stdout
  const { exitCode, timedOut } = await connect(await unit.terminal({ ...options, columns, rows, signal }))
  if (!timedOut) return exitCode
  note('error: The terminal was open for as long as one may be.')
  return exitCodes.timedOut
}

/** With this terminal, until the command has ended. */
async function connect(terminal: Terminal): Promise<Exit> {
  const { stdin, stdout } = process
  const onInput = (data: Buffer) => terminal.write(data)
  const onResize = () => terminal.resize(stdout.columns, stdout.rows)
  // Ctrl-C and the like go to the unit, as bytes.
  const putBack = makeRaw(stdin)
  stdin.on('data', onInput)
  stdout.on('resize', onResize)
  try {
    for await (const { bytes } of terminal.output) await write(bytes, stdout)
    return await terminal.wait()
  } finally {
    stdout.off('resize', onResize)
    stdin.off('data', onInput)
    putBack()
    stdin.pause()
  }
}
