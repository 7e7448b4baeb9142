// What a fork takes, by the size of the disk and of the memory, of one unit and of several at once. A fork is timed until
// its copies run; what it takes over a start shows beside the start of the same unit.

import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from './berth.ts'
import { type Figures, timed } from './figures.ts'

const IMAGE = 'berth.local/debian:12'
const AT_ONCE = 10
/** Until a process holds what it is to hold. */
export const FILLED_MS = 2000
const PAUSES = '/root/pauses'
/** What a fork is asked to copy, in MB. */
export const disks = [
  { name: 'fork, 10 MB on disk', megabytes: 10 },
  { name: 'fork, 5 GB on disk', megabytes: 5000 },
]
export const memories = [
  { name: 'fork, 1 MB in memory', megabytes: 1 },
  { name: 'fork, 100 MB in memory', megabytes: 100 },
]

/** A process that holds that much, each page written. In one piece Perl would hold it twice. */
export function holdingMemory(megabytes: number): string[] {
  return ['perl', '-e', `${filling(megabytes)}; sleep`]
}

/** The same, which notes how long it stood still, in ms, each time that was more than 20. */
function notingPauses(megabytes: number): string[] {
  const noting = `use Time::HiRes qw(time sleep); my $last = time; while (1) { sleep 0.002; my $now = time;
    if ($now - $last > 0.02) { open my $to, ">>", "${PAUSES}"; printf $to "%d\\n", 1000 * ($now - $last); close $to; $now = time }
    $last = $now }`
  return ['perl', '-e', `${filling(megabytes)}; ${noting}`]
}

function filling(megabytes: number): string {
  return `$x .= "x" x (1 << 20) for 1..${megabytes}`
}

type Forked = { units: { id: string }[]; copied: Record<string, string> }

export async function measureForks(call: Call, rounds: number): Promise<Figures> {
  return {
    ...(await measureDiskForks(call, rounds)),
    ...(await measureTogether(call, Math.max(3, Math.ceil(rounds / 5)))),
  }
}

export async function measureDiskForks(call: Call, rounds: number): Promise<Figures> {
  const starts: number[] = []
  const figures: Figures = { 'create to running': starts }
  for (const { name, megabytes } of disks) {
    const samples: number[] = []
    figures[name] = samples
    const source = await createUnit(call, { name: 'source', cmd: ['sleep', 'infinity'] })
    const fill = `head -c ${megabytes}M /dev/zero > /root/filler && sync`
    await call('POST', `/v1/units/${source}/exec`, { cmd: ['sh', '-c', fill], timeoutMs: 300_000 })
    for (let round = 0; round < rounds; round += 1) {
      await destroy(call, [
        await timed(starts, () => createUnit(call, { name: 'plain', cmd: ['sleep', 'infinity'] })),
      ])
      await destroy(call, copiesIn(await timed(samples, () => forkUnit(call, source))))
    }
    await destroy(call, [source])
  }
  return figures
}

export async function measureMemoryForks(call: Call, rounds: number): Promise<Figures> {
  const figures: Figures = {}
  for (const { name, megabytes } of memories) {
    const samples: number[] = []
    const pauses: number[] = []
    const told: string[] = []
    const source = await createUnit(call, { name: 'source', cmd: notingPauses(megabytes) })
    await delay(FILLED_MS)
    for (let round = 0; round < rounds; round += 1) {
      await takePauses(call, source)
      const forked = await timed(samples, () => forkUnit(call, source))
      pauses.push(Math.max(0, ...(await takePauses(call, source))))
      told.push(...Object.values(forked.copied))
      await destroy(call, copiesIn(forked))
    }
    await destroy(call, [source])
    const isMemory = told.every((each) => each === 'memory')
    figures[isMemory ? name : `${name}, disk copied`] = samples
    figures[isMemory ? pauseOf(name) : `${pauseOf(name)}, disk copied`] = pauses
  }
  return figures
}

/** How long the source of a fork stood still. */
export const pauseOf = (name: string) => `${name}: its source's pause`

async function takePauses(call: Call, unit: string): Promise<number[]> {
  const cmd = ['sh', '-c', `cat ${PAUSES}; rm -f ${PAUSES}`]
  const { stdout } = (await call('POST', `/v1/units/${unit}/exec`, { cmd })) as { stdout: string }
  return stdout.split('\n').filter(Boolean).map(Number)
}

/** Ten copies of one unit, and a stack of three. */
async function measureTogether(call: Call, rounds: number): Promise<Figures> {
  const figures = { 'ten forks at once': [] as number[], 'stack of three': [] as number[] }
  const names = ['web', 'api', 'db']
  const sources: string[] = []
  for (const name of names) sources.push(await createUnit(call, { name, cmd: ['sleep', 'infinity'] }, 'trio'))
  for (let round = 0; round < rounds; round += 1) {
    const copies = await timed(figures['ten forks at once'], () =>
      Promise.all(Array.from({ length: AT_ONCE }, () => forkUnit(call, sources[0] ?? ''))),
    )
    await destroy(call, copies.flatMap(copiesIn))
    await timed(figures['stack of three'], () => call('POST', '/v1/stacks/trio/fork', { into: 'copies' }))
    await call('DELETE', '/v1/stacks/copies')
  }
  await destroy(call, sources)
  return figures
}

function copiesIn({ units }: Forked): string[] {
  return units.map(({ id }) => id)
}

async function forkUnit(call: Call, source: string): Promise<Forked> {
  return (await call('POST', `/v1/units/${source}/fork`, {})) as Forked
}

async function createUnit(
  call: Call,
  { name, cmd }: { name: string; cmd: string[] },
  stack?: string,
): Promise<string> {
  const body = {
    spec: { name, image: IMAGE, size: 'medium', cmd },
    ...(stack === undefined ? {} : { stack }),
  }
  const { units } = (await call('POST', '/v1/units', body)) as { units: { id: string }[] }
  return units[0]?.id ?? ''
}

async function destroy(call: Call, ids: string[]): Promise<void> {
  await Promise.all(ids.map((id) => call('DELETE', `/v1/units/${id}`)))
}
