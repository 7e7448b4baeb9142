// `berth run`: creates a unit and runs a command in it. With --rm the unit is destroyed, however the command ends.

import { type CreateOptions, nameFor, type Unit } from '@berth/sdk'
import { endpointMode, pairs, UsageError, wholeNumber } from '../args.ts'
import type { Context } from '../context.ts'
import { print, printJson, waiting } from '../output.ts'
import { rulesOf } from './egress.ts'
import { runIn } from './exec.ts'

export async function run(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const isGoneAfter = args.flag('rm')
  if (isGoneAfter && args.rest.length === 0)
    throw new UsageError('--rm is for a command: berth run --rm IMAGE -- CMD…')
  const asked = createOptions(context)
  const unit = await waiting(`making ${asked.name}`, make(context, asked, isGoneAfter))
  try {
    if (args.rest.length > 0) {
      await unit.ready({ signal })
      return await runIn(context, unit, args.rest)
    }
    if (isJson) await printJson({ unit: unit.info, outputs: unit.outputs, costLine: unit.costLine })
    else for (const line of linesOf(unit)) await print(line)
    return 0
  } finally {
    // Also after Ctrl-C: not with its signal.
    if (isGoneAfter) await unit.destroy()
  }
}

async function make(
  context: Context,
  asked: CreateOptions & { name: string },
  isGoneAfter: boolean,
): Promise<Unit> {
  const { units } = context.berth()
  try {
    return await units.create({ ...asked, signal: context.signal })
  } catch (error) {
    // Interrupted, or without an answer: it may have been made all the same.
    const made =
      isGoneAfter && context.signal.aborted
        ? await units.find(asked.name, { stack: asked.stack }).catch(() => null)
        : null
    await made?.destroy()
    throw error
  }
}

function createOptions({ args }: Context): CreateOptions & { name: string } {
  const image = args.args[0] ?? ''
  const [expose, volume, size] = [endpointMode(args.text('expose')), args.text('volume'), args.text('size')]
  const [mount, gb] = volume?.split(':') ?? []
  return {
    image,
    // Known before the call, so that what was interrupted can be found.
    name: args.text('name') ?? nameFor(image),
    stack: args.text('stack'),
    expose,
    sleep: args.text('sleep'),
    egress: rulesOf(args),
    env: { ...pairs(args.list('env')), ...secretsOf(args.list('secret')) },
    ports: args.list('port').map((port) => wholeNumber(port, 'port')),
    // What is no size is refused by the service, which says those it has.
    ...(size === undefined ? {} : { size: size as NonNullable<CreateOptions['size']> }),
    ...(mount === undefined
      ? {}
      : { volume: { mount, ...(gb === undefined ? {} : { gb: wholeNumber(gb, 'size in GB') }) } }),
  }
}

/** `OPENAI_API_KEY=TEAM_KEY`, or one name for both. */
function secretsOf(words: string[]): Record<string, { teamSecret: string }> {
  const named = pairs(words.map((word) => (word.includes('=') ? word : `${word}=${word}`)))
  return Object.fromEntries(Object.entries(named).map(([name, teamSecret]) => [name, { teamSecret }]))
}

function linesOf(unit: Unit): string[] {
  const told = Object.entries(unit.outputs).map(([name, value]) => `${name}=${value}`)
  return [unit.name, ...told]
}
