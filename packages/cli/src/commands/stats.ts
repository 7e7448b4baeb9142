// `berth stats`: the resource usage of units, in the way of `docker stats`.

import type { Contract, Unit } from '@berth/sdk'
import { UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { type Cell, printJson, printTable, stateCell, write } from '../output.ts'

type Metrics = Contract.UnitMetrics
/** `cpus`: how many processors it used between two samples; null where it does not run. */
type Sample = { unit: Unit; metrics: Metrics; cpus: number | null }

/** Between the two samples that a share of processors takes. */
const BETWEEN_MS = 1000
const AT_ONCE = 8

export async function stats(context: Context): Promise<void> {
  const { args, signal } = context
  if (args.flag('follow')) return await follow(context)
  const units =
    args.args.length === 0
      ? await context
          .berth()
          .units.list({ state: ['running'], signal })
          .all()
      : await inTurns(args.args, (word) => unitOf(context, word))
  const first = await inTurns(units, (unit) => unit.metrics({ signal }))
  await new Promise((resolve) => setTimeout(resolve, units.length === 0 ? 0 : BETWEEN_MS))
  const second = await inTurns(units, (unit) => unit.metrics({ signal }))
  const samples = units.flatMap((unit, i) => sampleOf(unit, first[i] ?? null, second[i]))
  if (context.isJson) return await printJson(samples.map(shown))
  await printTable(heads, samples.map(rowOf))
}

/** Of one unit, a line for each sample. */
async function follow(context: Context): Promise<void> {
  const { args, isJson, signal } = context
  const [word, ...others] = args.args
  if (word === undefined || others.length > 0) throw new UsageError('One unit can be followed at a time.')
  const unit = await unitOf(context, word)
  let before: Metrics | null = null
  for await (const metrics of unit.followMetrics({ signal })) {
    const [sample] = sampleOf(unit, before, metrics)
    if (sample && isJson) await write(`${JSON.stringify(shown(sample))}\n`)
    else if (sample) await printTable(before === null ? heads : null, [rowOf(sample)], widths)
    before = metrics
  }
}

function sampleOf(unit: Unit, before: Metrics | null, metrics: Metrics | undefined): Sample[] {
  return metrics ? [{ unit, metrics, cpus: cpusBetween(before, metrics) }] : []
}

/** Null if it does not run, was restarted since, or has no earlier sample. */
function cpusBetween(before: Metrics | null, after: Metrics): number | null {
  if (!before?.run || !after.run || before.run.startedAt !== after.run.startedAt) return null
  const passedMs = Date.parse(after.at) - Date.parse(before.at)
  return passedMs > 0 ? Math.max(0, after.run.cpu.usedMs - before.run.cpu.usedMs) / passedMs : null
}

const heads = ['NAME', 'STATE', 'CPU', 'MEMORY', 'PIDS', 'NET IN / OUT', 'DISK READ / WRITTEN', 'DISK']
/** Lines that come one by one stand below each other. */
const widths = [16, 9, 14, 19, 9, 20, 20, 19]

function rowOf({ unit, metrics, cpus }: Sample): Cell[] {
  const { run, disk } = metrics
  return [
    unit.name,
    stateCell(metrics.state),
    run && cpus !== null ? `${(100 * cpus).toFixed(0)}% of ${run.cpu.limitCpus * 100}%` : '-',
    run ? `${byteSize(run.memory.usedBytes)} of ${byteSize(run.memory.limitBytes)}` : '-',
    run ? `${run.pids.count} of ${run.pids.limit}` : '-',
    run?.network ? `${byteSize(run.network.receivedBytes)} / ${byteSize(run.network.sentBytes)}` : '-',
    run?.io ? `${byteSize(run.io.readBytes)} / ${byteSize(run.io.writtenBytes)}` : '-',
    `${disk.usedBytes === null ? '?' : byteSize(disk.usedBytes)} of ${byteSize(disk.limitBytes)}`,
  ]
}

const shown = ({ unit, metrics, cpus }: Sample) => ({ name: unit.name, cpus, ...metrics })

/** A few calls at a time, in their order. */
async function inTurns<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = []
  for (let at = 0; at < items.length; at += AT_ONCE)
    done.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(work))))
  return done
}
