// `berth shell` and `berth exec -t`: connects this terminal with a command in a unit.

import type { Exit, Terminal, TerminalOptions } from '@berth/sdk'
import { pairs, UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note, write } from '../output.ts'
import { makeRaw } from '../raw-terminal.ts'

export async function shell(context: Context): Promise<number> {
  const { rest } = context.args
  return await runInTerminal(context, rest.length === 0 ? {} : { command: rest })
}

/** Answers the exit code of the command. `--workdir`, `--user` and `--env` are looked at here. */
export async function runInTerminal(
  context: Context,
  asked: Pick<TerminalOptions, 'command'>,
): Promise<number> {
  const { args, signal, isJson } = context
  const { stdin, stdout } = process
  const [word = ''] = args.args
  if (isJson) throw new UsageError('A terminal has no JSON.')
  const [workdir, user] = [args.text('workdir'), args.text('user')]
  const options = {
    ...asked,
    ...(user === undefined ? {} : { user }),
    ...(workdir === undefined ? {} : { cwd: workdir }),
    env: { TERM: process.env.TERM ?? 'xterm-256color', ...pairs(args.list('env')) },
  }
  if (typeof WebSocket === 'undefined')
    throw new Failure(`A terminal needs Node 22 or newer, and this is Node ${process.versions.node}.`, {
      hint: `berth exec ${word} -- CMD…, which works with this one`,
    })
  if (!stdin.isTTY || !stdout.isTTY)
    throw new Failure('Standard input and output are no terminal.', { hint: `berth exec ${word} -- CMD…` })
  const unit = await unitOf(context, word)
  const { columns, rows } = stdout
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
