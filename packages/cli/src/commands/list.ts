// `berth ls`, `berth ps`, and `berth keep-awake` of what ps lists.

import { milliseconds, oneOf, pairs } from '../args.ts'
import { type Context, stackNameOf, unitOf } from '../context.ts'
import { euros } from '../../../../src/lib/money.ts'
import { print, printJson, printTable, relative, stateCell, write } from '../output.ts'

const states = [
  'creating',
  'running',
  'stopping',
  'stopped',
  'sleeping',
  'starting',
  'destroying',
  'destroyed',
  'error',
] as const
const orders = [
  'name',
  '-name',
  'state',
  '-state',
  'cost',
  '-cost',
  'lastUsedAt',
  '-lastUsedAt',
  'createdAt',
  '-createdAt',
] as const

export async function ls(context: Context): Promise<void> {
  const { args, isJson, signal } = context
  const labels = args.list('metadata')
  const list = context.berth().units.list({
    all: args.flag('all') || undefined,
    stack: args.text('stack'),
    q: args.text('match'),
    metadata: labels.length === 0 ? undefined : pairs(labels),
    state: statesIn(args.list('state')),
    sort: oneOf(args.text('sort'), orders, 'order'),
    signal,
  })
  const units = await list.all()
  if (isJson) {
    await printJson(units.map(({ info }) => info))
  } else if (args.flag('quiet')) {
    for (const { id } of units) await print(id)
  } else {
    await printTable(
      ['NAME', 'STACK', 'STATE', 'SIZE', 'IMAGE', 'COST', 'SLEEPS', 'LAST USED'],
      units.map((unit) => [
        unit.name,
        stackNameOf(unit),
        stateCell(unit.state),
        unit.info.size,
        unit.info.image,
        euros(unit.info.costCentsSoFar),
        unit.info.sleepsAt === null ? '-' : relative(unit.info.sleepsAt),
        relative(unit.info.lastUsedAt),
      ]),
    )
  }
}

export async function ps(context: Context): Promise<void> {
  const unit = await unitOf(context, context.args.args[0] ?? '')
  const processes = await unit.processes.list({ signal: context.signal })
  if (context.isJson) return await printJson(processes.map(({ info }) => info))
  await printTable(
    ['ID', 'STATE', 'EXIT', 'STARTED', 'COMMAND'],
    processes.map(({ info }) => [
      info.id,
      stateCell(info.state),
      info.exitCode === null ? '-' : String(info.exitCode),
      relative(info.startedAt),
      info.cmd.join(' '),
    ]),
  )
}

export async function keepAwake(context: Context): Promise<void> {
  const [word = '', id = '', time] = context.args.args
  const unit = await unitOf(context, word)
  const process = await unit.processes.get(id, { signal: context.signal })
  const { info } = await process.keepAwake(time === undefined ? undefined : milliseconds(time), {
    signal: context.signal,
  })
  if (context.isJson) return await printJson(info)
  await write(`${info.awakeUntil ?? '-'}\n`)
}

/** Of all that is there, where none is named. */
function statesIn(named: string[]): (typeof states)[number][] | undefined {
  const found = named.flatMap((state) => oneOf(state, states, 'state') ?? [])
  return found.length === 0 ? undefined : found
}
