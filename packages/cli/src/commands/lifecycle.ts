// Commands that change the state of units: fork, sleep, wake, stop, start, restart, rm. With several units all are tried, and each
// failure is printed; the first one decides the exit code.

import type { Unit } from '@berth/sdk'
import { type Context, unitOf } from '../context.ts'
import { Failure, tell } from '../failure.ts'
import { UsageError } from '../args.ts'
import { print, printJson, waiting, write } from '../output.ts'

export async function fork(context: Context): Promise<void> {
  const { args, signal, isJson } = context
  const unit = await unitOf(context, args.args[0] ?? '')
  const copying = unit.fork({ name: args.text('name'), stack: args.text('stack'), signal })
  const copy = await waiting(`copying ${unit.name}`, copying)
  await (isJson
    ? printJson({ unit: copy.info, copied: copy.copied, outputs: copy.outputs })
    : print(copy.name))
}

export async function sleep(context: Context): Promise<void> {
  const { args, signal, isJson } = context
  const [word = '', given] = args.args
  const now = args.flag('now')
  if (given === undefined && !now)
    throw new UsageError(
      'Say for how long it may go unused: berth sleep UNIT WINDOW',
      `berth sleep ${word} 30m, or berth sleep ${word} --now`,
    )
  const found = await unitOf(context, word)
  const window = given ?? found.info.sleep
  const unit = await found.sleep(window, { stack: args.flag('stack'), now, signal })
  if (isJson) await printJson(unit.info)
}

export const stop = async (context: Context) =>
  await each(context, ['stop', 'stopping'], async (unit) => await unit.stop({ signal: context.signal }))
export const start = async (context: Context) =>
  await each(context, ['start', 'starting'], async (unit) => await unit.start({ signal: context.signal }))
export const wake = async (context: Context) =>
  await each(context, ['wake', 'waking'], async (unit) => {
    if (unit.state === 'stopped')
      throw new Failure(`Unit "${unit.name}" is stopped, not asleep.`, {
        hint: `berth start ${unit.name}`,
        code: 'invalid_state',
      })
    return await unit.start({ signal: context.signal })
  })
export const restart = async (context: Context) =>
  await each(context, ['restart', 'restarting'], async (unit) => {
    const { signal } = context
    if (unit.state !== 'stopped') await unit.stop({ signal })
    return await unit.start({ signal })
  })
export const rm = async (context: Context) =>
  await each(
    context,
    ['rm', 'destroying'],
    async (unit) => await unit.destroy({ signal: context.signal }),
    context.args.flag('force'),
  )

/** As JSON, always: a list, as of several units. */
export async function inspect(context: Context): Promise<number> {
  const found: Unit[] = []
  const codes: number[] = []
  for (const word of context.args.args) {
    try {
      found.push(await unitOf(context, word))
    } catch (error) {
      if (context.signal.aborted) throw error
      codes.push(tell(error, 'inspect', context.isJson))
    }
  }
  await write(
    `${JSON.stringify(
      found.map(({ info }) => info),
      null,
      2,
    )}\n`,
  )
  return codes[0] ?? 0
}

async function each(
  context: Context,
  [command, doing]: [command: string, doing: string],
  act: (unit: Unit) => Promise<Unit>,
  mayBeGone = false,
): Promise<number> {
  const codes: number[] = []
  const done: Unit[] = []
  for (const word of context.args.args) {
    try {
      done.push(await waiting(`${doing} ${word}`, act(await unitOf(context, word))))
      if (!context.isJson) await print(word)
    } catch (error) {
      if (context.signal.aborted) throw error
      if (mayBeGone && (error as { code?: unknown }).code === 'not_found') continue
      codes.push(tell(error, command, context.isJson))
    }
  }
  if (context.isJson) await printJson(done.map(({ info }) => info))
  return codes[0] ?? 0
}
