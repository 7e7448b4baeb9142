// Commands that change the state of units: fork, sleep, stop, start, rm. With several units all are tried, and each
// failure is printed; the first one decides the exit code.

import type { Unit } from '@berth/sdk'
import { type Context, unitOf } from '../context.ts'
import { tell } from '../failure.ts'
import { print, printJson, waiting } from '../output.ts'

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
  const [word = '', window = ''] = args.args
  const unit = await (await unitOf(context, word)).sleep(window, { stack: args.flag('stack'), signal })
  if (isJson) await printJson(unit.info)
}

export const stop = async (context: Context) =>
  await each(context, ['stop', 'stopping'], async (unit) => await unit.stop({ signal: context.signal }))
export const start = async (context: Context) =>
  await each(context, ['start', 'starting'], async (unit) => await unit.start({ signal: context.signal }))
export const rm = async (context: Context) =>
  await each(context, ['rm', 'destroying'], async (unit) => await unit.destroy({ signal: context.signal }))

async function each(
  context: Context,
  [command, doing]: [command: string, doing: string],
  act: (unit: Unit) => Promise<Unit>,
): Promise<number> {
  const codes: number[] = []
  const done: Unit[] = []
  for (const word of context.args.args) {
    try {
      done.push(await waiting(`${doing} ${word}`, act(await unitOf(context, word))))
      if (!context.isJson) await print(word)
    } catch (error) {
      if (context.signal.aborted) throw error
      codes.push(tell(error, command, context.isJson))
    }
  }
  if (context.isJson) await printJson(done.map(({ info }) => info))
  return codes[0] ?? 0
}
