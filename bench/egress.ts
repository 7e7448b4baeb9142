// `npm run bench:egress`: what rules of egress cost, beside a unit without rules in the same run. The network is made of
// namespaces with a host of the benchmark's own; `create` is measured through the API of a temporary Berth, in runc.

import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { MachineEgress } from '../src/engine/egress.ts'
import { PUBLIC } from '../test/support/network-lab/lab.ts'
import { actionsOf, clientOf, destroyAll } from './berth.ts'
import { measureBeside } from './egress-beside.ts'
import { type EgressLab, manyRules, openEgressLab } from './egress-lab.ts'
import { egressPeers } from './egress-peers.ts'
import { type Figures, formatTable, percentile, timed } from './figures.ts'
import { cpuSecondsOf, residentKb, startBerth } from './service.ts'

const NAME = 'a.example.com'
const GIVEN_BYTES = 256 * 1024 ** 2
const MINUTE_MS = 60_000

const parts = {
  connects: measureConnects,
  throughput: measureThroughput,
  change: measureChange,
  many: measureMany,
} as const satisfies Record<string, (lab: EgressLab, rounds: number) => Promise<void>>

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    only: { type: 'string', default: 'connects,throughput,change,many,create,beside' },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(`npm run bench:egress -- [--rounds 10] [--only connects,throughput,change,many,create,beside]

connects    a TLS connection until its first byte, with 128 rules and without any
throughput  256 MB over one TLS connection, likewise, and through a pipe of Node and haproxy (Debian: haproxy)
change      rules that take a host away: until they are in force and 100 open connections to it are cut
many        restricted machines, 128 rules each, as many as are made in a minute, and what they cost
create      a unit with rules beside one without, and PUT of its rules, through the API
beside      requests of a unit beside one of another team that attacks the process that decides by name, on loopback`)
} else {
  await runBenchmarks(new Set(options.only.split(',')), Number(options.rounds))
}

async function runBenchmarks(only: Set<string>, rounds: number): Promise<void> {
  console.log(`load ${loadavg()[0]?.toFixed(1)} at the beginning`)
  if (only.has('beside')) await measureBeside(rounds)
  const inLab = Object.entries(parts).filter(([name]) => only.has(name))
  if (inLab.length > 0)
    await measureInLab(
      inLab.map(([, part]) => part),
      rounds,
    )
  if (only.has('create')) await measureCreates(rounds)
  console.log(`load ${loadavg()[0]?.toFixed(1)} at the end`)
}

async function measureInLab(wanted: (typeof parts)[keyof typeof parts][], rounds: number): Promise<void> {
  const lab = await openEgressLab()
  try {
    for (const machine of ['open', 'listed']) await lab.attach(machine)
    await lab.network.restrict('listed', manyRules)
    for (const part of wanted) await part(lab, rounds)
  } finally {
    await lab.close()
  }
}

async function measureConnects(lab: EgressLab, rounds: number): Promise<void> {
  const times: Record<string, number[]> = { open: [], listed: [] }
  for (let round = 0; round < rounds; round += 1)
    for (const machine of ['open', 'listed']) {
      const [outcome] = await lab.from(machine, { connects: 30, tls: PUBLIC, name: NAME })
      if (!outcome || !('times' in outcome)) throw new Error(`no connection: ${JSON.stringify(outcome)}`)
      // The first ones of a client are those of its own start.
      times[machine]?.push(...outcome.times.slice(5))
    }
  printTable({ 'TLS connection, to its first byte': times })
}

/** Each way in turn, so that what the machine does meanwhile is in all of a round. */
async function measureThroughput(lab: EgressLab, rounds: number): Promise<void> {
  const ways = [wayThrough('open', lab, null), wayThrough('listed', lab, lab.pid)]
  const labs: EgressLab[] = []
  try {
    for (const peer of await egressPeers()) {
      const beside = await openEgressLab(peer)
      labs.push(beside)
      await beside.attach('listed')
      await beside.network.restrict('listed', manyRules)
      ways.push({ ...wayThrough('listed', beside, beside.pid), name: peer })
    }
    // The first one of each compiles, and is not counted.
    for (const { take } of ways) await take()
    for (let round = 0; round < rounds; round += 1)
      for (const { rates, seconds, take, pid } of ways) {
        const before = pid === null ? 0 : cpuSecondsOf(pid)
        const took = await take()
        rates.push(GIVEN_BYTES / 1024 ** 2 / (took / 1000))
        if (pid !== null) seconds.push((cpuSecondsOf(pid) - before) * (1024 ** 3 / GIVEN_BYTES))
      }
  } finally {
    for (const each of labs) await each.close()
  }
  const open = ways[0]?.rates ?? []
  console.log('| 256 MB over TLS | MB/s | ratio to open in each round | processor time for each GB |')
  console.log('|---|---|---|---|')
  for (const { name, rates, seconds } of ways) {
    const ratios = rates.map((rate, at) => rate / (open[at] ?? Number.NaN))
    const used = seconds.length === 0 ? '-' : `${percentile(seconds, 0.5).toFixed(2)} s`
    const [middle, least, most] = [percentile(ratios, 0.5), Math.min(...ratios), Math.max(...ratios)]
    const ratio = `${middle.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`
    console.log(`| ${name} | ${percentile(rates, 0.5).toFixed(0)} | ${ratio} | ${used} |`)
  }
}

/** `pid`: of the process that the bytes pass through. */
function wayThrough(machine: string, lab: EgressLab, pid: number | null) {
  const take = async () => {
    const [outcome] = await lab.from(machine, { tls: PUBLIC, name: NAME, takeBytes: GIVEN_BYTES })
    if (!outcome || !('bytes' in outcome) || outcome.bytes < GIVEN_BYTES)
      throw new Error(`not all bytes: ${JSON.stringify(outcome)}`)
    return outcome.ms
  }
  return { name: machine, pid, rates: [] as number[], seconds: [] as number[], take }
}

async function measureChange(lab: EgressLab, rounds: number): Promise<void> {
  const without: MachineEgress = { ...manyRules, allow: manyRules.allow.filter((entry) => entry !== NAME) }
  const inForce: number[] = []
  const cut: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const held = await lab.hold('listed', 100, NAME)
    const begun = performance.timeOrigin + performance.now()
    await timed(inForce, () => lab.network.restrict('listed', without))
    cut.push((await held.cut) - begun)
    await lab.network.restrict('listed', manyRules)
  }
  printTable({ 'rules in force': { listed: inForce }, '100 open connections cut': { listed: cut } })
}

async function measureMany(lab: EgressLab, rounds: number): Promise<void> {
  const until = performance.now() + MINUTE_MS
  let made = 0
  const before = residentKb(lab.pid)
  const make = async () => {
    while (performance.now() < until) {
      const machine = `many-${made++}`
      await lab.attach(machine)
      await lab.network.restrict(machine, manyRules)
    }
  }
  await Promise.all([make(), make(), make(), make()])
  console.log(
    `${made} restricted machines with 128 rules each were made in a minute; the process that decides by name has ${Math.round((residentKb(lab.pid) - before) / 1024)} MB more for them`,
  )
  await delay(1000)
  const names = { ...manyRules, allow: manyRules.allow.filter((entry) => !entry.includes('/')) }
  const changes: Record<string, number[]> = { 'of a name': [], 'with 32 ranges more': [] }
  for (let round = 0; round < rounds; round += 1) {
    await lab.network.restrict('listed', names)
    await timed(changes['of a name'] ?? [], () =>
      lab.network.restrict('listed', { ...names, allow: names.allow.slice(1) }),
    )
    await timed(changes['with 32 ranges more'] ?? [], () => lab.network.restrict('listed', manyRules))
  }
  printTable({ 'a change of rules': changes })
  await measureConnects(lab, Math.max(2, rounds >> 1))
}

async function measureCreates(rounds: number): Promise<void> {
  const berth = await startBerth('runc', {})
  const figures: Record<string, Figures> = {
    open: { 'create to running': [] },
    listed: { 'create to running': [], 'PUT of 128 rules': [] },
  }
  try {
    const call = clientOf(berth)
    const { mode, allow, siblings } = manyRules
    const egress = { mode, allow, siblings }
    const actions = { open: actionsOf(call), listed: actionsOf(call, { egress }) }
    // The first restricted unit starts the process that decides by name.
    for (const { create, destroy } of Object.values(actions)) await destroy(await create())
    for (let round = 0; round < rounds; round += 1)
      for (const [name, { create, destroy }] of Object.entries(actions)) {
        const id = await timed(figures[name]?.['create to running'] ?? [], create)
        if (name === 'listed')
          for (const rules of [{ ...egress, allow: allow.slice(1) }, egress])
            await timed(figures[name]?.['PUT of 128 rules'] ?? [], () =>
              call('PUT', `/v1/units/${id}/egress`, rules),
            )
        await destroy(id)
      }
    await destroyAll(call)
  } finally {
    await berth.stop()
  }
  console.log(formatTable(Object.entries(figures).map(([column, own]) => ({ column, figures: own }))))
}

/** Rows to their columns. */
function printTable(rows: Record<string, Record<string, number[]>>): void {
  const columns = [...new Set(Object.values(rows).flatMap((row) => Object.keys(row)))]
  const figuresOf = (column: string): Figures =>
    Object.fromEntries(
      Object.entries(rows).flatMap(([row, cells]) => (cells[column] ? [[row, cells[column]]] : [])),
    )
  console.log(formatTable(columns.map((column) => ({ column, figures: figuresOf(column) }))))
}
