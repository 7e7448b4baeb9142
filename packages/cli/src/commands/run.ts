// `berth run`: creates a unit and runs a command in it. With --rm the unit is destroyed, however the command ends.

import { type CreateOptions, isBerthError, nameFor, type Unit } from '@berth/sdk'
import { endpointMode, oneOf, pairs, UsageError, wholeNumber } from '../args.ts'
import type { Context } from '../context.ts'
import { followCreation } from '../creation.ts'
import { unitLeftBy } from '../failure.ts'
import { print, printJson, waiting } from '../output.ts'
import { rulesOf } from './egress.ts'
import { runIn, spawnOptions } from './exec.ts'
import { checkTerminal, terminalIn, terminalOptions } from './shell.ts'

const ends = ['destroy', 'sleep', 'stop'] as const
const sizes = ['nano', 'small', 'medium', 'large'] as const

export async function run(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const isGoneAfter = args.flag('rm')
  if (isGoneAfter && args.rest.length === 0 && !args.flag('tty'))
    throw new UsageError(
      '--rm is for a command: berth run --rm IMAGE -- CMD…',
      'berth run -it --rm IMAGE, for a shell',
    )
  const [asked, command] = [createOptions(context), spawnOptions(args)]
  const [isTerminal, isDetached] = [args.flag('tty'), args.flag('detach')]
  if (isTerminal && isDetached) throw new UsageError('-d and -t exclude each other')
  if (isGoneAfter && isDetached)
    throw new UsageError('-d and --rm exclude each other', 'berth run -d --time-to-live 1h IMAGE -- CMD…')
  if (isTerminal) checkTerminal(context, 'run')
  const making = make(context, asked, isGoneAfter)
  const follow = isJson && !process.stderr.isTTY ? undefined : followCreation(context, asked.name)
  const unit = await waiting(`creating ${asked.name}`, making, follow)
  try {
    if (isTerminal)
      return await terminalIn(context, await unit.ready({ signal }), terminalOptions(context, args.rest))
    if (args.rest.length > 0) {
      await unit.ready({ signal })
      if (!isDetached) return await runIn(context, unit, args.rest, command)
      await unit.processes.start(args.rest, { signal })
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
  const { signal } = context
  const ofThatName = async (call: { signal?: AbortSignal } = {}) =>
    (await units.list({ stack: asked.stack, ...call }).all()).filter(({ name }) => name === asked.name)
  // Other stacks may have units of a name that was given.
  const others = isGoneAfter && context.args.text('name') !== undefined ? await ofThatName({ signal }) : []
  try {
    return await units.create({ ...asked, signal })
  } catch (error) {
    const failed = isBerthError(error) ? unitLeftBy(error) : null
    // Interrupted, or without an answer: it may have been made all the same.
    const isLeft = ({ id }: Unit) =>
      failed === null ? signal.aborted && others.every((other) => other.id !== id) : id === failed
    if (isGoneAfter)
      for (const unit of (await ofThatName().catch(() => [])).filter(isLeft)) await unit.destroy()
    throw error
  }
}

function createOptions({ args }: Context): CreateOptions & { name: string } {
  const image = args.args[0] ?? ''
  const [expose, volume] = [endpointMode(args.text('expose')), args.text('volume')]
  const size = oneOf(args.text('size'), sizes, 'size')
  const [mount, gb] = volume?.split(':') ?? []
  return {
    image,
    // Known before the call, so that what was interrupted can be found.
    name: args.text('name') ?? nameFor(image),
    stack: args.text('stack'),
    expose,
    sleep: args.text('sleep'),
    egress: rulesOf(args),
    ...(args.flag('nested') ? { nested: true } : {}),
    metadata: pairs(args.list('metadata')),
    timeToLive: args.text('time-to-live'),
    atEnd: oneOf(args.text('at-end'), ends, 'end'),
    env: { ...pairs(args.list('env')), ...secretsOf(args.list('secret')) },
    ports: args.list('port').map(portOf),
    ...(size === undefined ? {} : { size }),
    ...(mount === undefined
      ? {}
      : { volume: { mount, ...(gb === undefined ? {} : { gb: wholeNumber(gb, 'size in GB') }) } }),
  }
}

/** Throws UsageError, with a hint for who maps ports as with docker. */
function portOf(text: string): number {
  const [, inside] = /^[\d.:]*:(\d+)$/.exec(text) ?? []
  if (inside === undefined) return wholeNumber(text, 'port')
  throw new UsageError(
    `"${text}" is not a port: a unit has a URL of its own, and its ports are not mapped to others`,
    `--port ${inside}, then berth url UNIT`,
  )
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
