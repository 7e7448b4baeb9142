// What of an instance's machines is on its host, as sentences: one for each thing that is there. Read from the
// kernel and the file system alone, never from the engine, so that an engine which is wrong about itself is
// found out.

import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { openCgroups, workGroups } from '../../src/engine/oci/kernel/cgroups.ts'
import { applyRunningMark, type MachineRecord } from '../../src/engine/oci/records/record.ts'
import { routesHere } from '../../src/engine/oci/network/host-state.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { readTables } from '../../src/engine/oci/network/table-listing.ts'
import { createPaths } from '../../src/engine/oci/paths.ts'
import { nameFirstRun } from '../../src/engine/oci/warm-pool/ready.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { type Instance, runDirOf } from '../../src/supervisor/instance.ts'
import { namesOnHost, type Process, processesOf } from './host-state.ts'

/** Wires made ahead of need: as many as the engine keeps, and a batch more while it makes them. */
const MAX_SPARE_SLOTS = 20

export async function hostFacts(instance: Instance, dataDir: string): Promise<string[]> {
  const processes = await processesOf(namesOnHost(instance, dataDir))
  const facts = await Promise.all([
    groupFacts(instance),
    directoryFacts(runDirOf(instance)),
    diskFacts(dataDir),
    recordFacts(dataDir, runDirOf(instance)),
    networkFacts(instance, processes),
    mountFacts(instance, dataDir),
  ])
  const standbys = standbysAmong(processes)
  const isOfStandby = (fact: string) => standbys.some((name) => fact.includes(name))
  return [...processFacts(instance, processes), ...facts.flat().filter((fact) => !isOfStandby(fact))]
}

/** Names of the commands that a machine is about to run: a shell that waits for its script (decisions/commands.md). */
function standbysAmong(processes: Process[]): string[] {
  return processes
    .filter(({ command }) => / sh -s ?$/.test(command))
    .flatMap(({ cgroup }) => /\/(exec-[0-9a-f]+)\b/.exec(cgroup)?.[1] ?? [])
}

// Processes

/** Programs of Berth itself, which belong to no machine. */
const ownPrograms =
  /src\/main\.ts (?:all|engine|server|gateway|egress|migrate) |\/bin\/postgres -D |^postgres: /

function processFacts(instance: Instance, processes: Process[]): string[] {
  const facts = new Set<string>()
  for (const process of processes) {
    const { command } = process
    const run = runOf(instance, process)
    if (run !== null) {
      const kind = /^runsc-(sandbox|gofer) /.exec(command)?.[1]
      facts.add(kind === undefined ? `${run} has processes` : `${run} has a ${kind}`)
    } else if (command.startsWith('conmon ')) {
      facts.add(`${/ --cid (\S+)/.exec(command)?.[1]} has a monitor`)
    } else if (command !== '' && !ownPrograms.test(command)) {
      // Without a command it is one that is just ending, as a worker of Postgres may be.
      facts.add(`a process of no machine: ${command.slice(0, 200)}`)
    }
  }
  return [...facts]
}

/** The run in whose group a process is; groups of single commands lie below it. */
function runOf({ id }: Instance, { cgroup }: Process): string | null {
  const runs = [...cgroup.matchAll(new RegExp(`/berth-${id}/(?:team-\\d+/)?([^/\\s]+)`, 'g'))]
  // What works for a team outside its machines has its processor time counted, and is in no run.
  return runs.map(([, run]) => run).find((run) => run !== undefined && !workGroups.includes(run)) ?? null
}

/** Groups, in every tree there is, and whether they stand still. */
async function groupFacts({ id }: Instance): Promise<string[]> {
  const { version, trees, main, parent } = openCgroups(id)
  const lists = await Promise.all(
    Object.entries(trees).map(async ([name, tree]) => ({ name, places: await placesIn(join(tree, parent)) })),
  )
  const facts: string[] = []
  for (const place of new Set(lists.flatMap(({ places }) => places))) {
    const run = basename(place)
    const missing = lists.filter(({ places }) => !places.includes(place)).map(({ name }) => name)
    // Beside version 1 trees the one of version 2 controls nothing, and runsc leaves it alone.
    if (version === 1 && missing.join() === 'unified') missing.pop()
    facts.push(missing.length === 0 ? `${run} has a group` : `${run} has no group of ${missing.join()}`)
    const file = version === 2 ? 'cgroup.events' : 'freezer.state'
    const text = await readFile(join(main, parent, place, file), 'utf8').catch(() => '')
    if (/FROZEN|^frozen 1/m.test(text)) facts.push(`${run} stands still`)
    else if (!/THAWED|^frozen 0/m.test(text))
      facts.push(`${run} is neither frozen nor thawed: ${text.trim()}`)
    for (const exec of await directoriesIn(join(main, parent, place)))
      facts.push(`${run} has a command, ${exec}`)
  }
  return facts
}

/** Groups of runs below the instance's, those in a team's group as `<team>/<run>`. */
async function placesIn(parent: string): Promise<string[]> {
  const names = await directoriesIn(parent)
  const teams = names.filter((name) => /^team-\d+$/.test(name))
  const inTeams = await Promise.all(
    teams.map(async (team) => (await directoriesIn(join(parent, team))).map((run) => `${team}/${run}`)),
  )
  const places = [...names.filter((name) => !teams.includes(name)), ...inTeams.flat()]
  return places.filter((place) => !workGroups.includes(basename(place)))
}

// Files

async function directoryFacts(runDir: string): Promise<string[]> {
  const list = async (directory: string) => await readdir(join(runDir, directory)).catch(() => [])
  const runs = await list('runs')
  const states = await Promise.all(['runc', 'runsc'].map(list))
  const execs = await Promise.all(runs.map(async (run) => await list(join('runs', run, 'execs'))))
  return [
    ...runs.map((run) => `${run} has a directory`),
    ...[...new Set(states.flat().map(runNamedBy))].map((run) => `${run} is known to its runtime`),
    ...execs.flat().map((file) => `a description of a command, ${file}`),
    ...(await list('exits')).map((run) => `${run} has an exit file`),
    ...(await list('images')).map((name) => `a pull under way, ${name}`),
  ]
}

/** runc: a directory of the run's name; runsc: `<run>_sandbox:<run>.state` and `.lock`, `runsc-<run>.sock`. */
function runNamedBy(file: string): string {
  return /((?:unit_|ready-)[0-9a-f]+-\d+)/.exec(file)?.[1] ?? file
}

async function diskFacts(dataDir: string): Promise<string[]> {
  const options = { timeoutMs: 20_000 }
  const text = await runOrThrow('btrfs', ['subvolume', 'list', join(dataDir, 'pool')], options)
  const listed = text.split('\n').flatMap((line) => / path (.+)$/.exec(line)?.[1] ?? [])
  const made = await Promise.all(
    ['disks', 'volumes'].map(async (kind) => await readdir(join(dataDir, 'pool', kind))),
  )
  return [
    ...listed.map((path) => `a subvolume, ${path}`),
    ...made.flat().map((id) => `${id} has something in the pool`),
  ]
}

async function recordFacts(dataDir: string, runDir: string): Promise<string[]> {
  const paths = createPaths({ dataDir, runDir })
  const ids = await readdir(join(dataDir, 'machines'))
  return await Promise.all(
    ids.map(async (id) => {
      const text = await readFile(join(dataDir, 'machines', id, 'machine.json'), 'utf8').catch(() => null)
      if (text === null) return `${id} has a directory without a record`
      const record = JSON.parse(text) as MachineRecord
      nameFirstRun(paths, record)
      applyRunningMark(paths.run(id, record.generation), record)
      const { state, generation, address } = record
      const run = state === 'running' ? `, in which run ${generation} goes on` : ''
      return `${id} has a record with ${address}${run}`
    }),
  )
}

async function mountFacts({ id }: Instance, dataDir: string): Promise<string[]> {
  const table = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4])
  const devices = (await readdir('/sys/block')).filter((name) => name.startsWith('loop'))
  const files = await Promise.all(
    devices.map((name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')),
  )
  return [
    ...table.filter((path) => path?.startsWith(`${dataDir}/`)).map((path) => `a mount, ${path}`),
    ...table.filter((path) => path?.startsWith(`/run/berth/${id}/`)).map((path) => `a mount, ${path}`),
    ...files.filter((file) => file.startsWith(dataDir)).map((file) => `a loop device of ${file.trim()}`),
  ]
}

// Network

type Slot = { namespace: boolean; link: boolean; chain: boolean; address: string | null }

async function networkFacts(instance: Instance, processes: Process[]): Promise<string[]> {
  const { table, namespacePrefix, interfacePrefix, subnet } = namesOf(instance)
  const [tables, routes, namespaces, links] = await Promise.all([
    readTables(table),
    routesHere(),
    readdir('/run/netns').catch(() => []),
    readdir('/sys/class/net'),
  ])
  if (!tables) return ['no table of the firewall']
  const numbersOf = (list: string[], prefix: string) =>
    list.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
  const slots = new Map<string, Slot>()
  const slot = (number: string) => {
    const known = slots.get(number) ?? { namespace: false, link: false, chain: false, address: null }
    slots.set(number, known)
    return known
  }
  for (const number of numbersOf(namespaces, namespacePrefix)) slot(number).namespace = true
  for (const number of numbersOf(links, interfacePrefix)) slot(number).link = true
  for (const number of numbersOf(tables.portChains, 'in-')) slot(number).chain = true
  for (const { interface: name, destination } of routes) {
    if (!name?.startsWith(interfacePrefix)) continue
    slot(name.slice(interfacePrefix.length)).address = destination.replace('/32', '')
  }
  const plugged = tables.machines.map((element) => {
    const [port = '', address = ''] = element.split(' ')
    return { number: port.slice(interfacePrefix.length), address }
  })
  const broken = [...slots].filter(([, { namespace, link, chain, address }]) => {
    return !namespace || !link || !chain || address === null
  })
  const spare = slots.size - plugged.length
  return [
    ...(routes.some((route) => route.destination === subnet) ? [] : ['no route that discards the rest']),
    ...broken.map(([number, parts]) => `slot ${number} is not whole: ${JSON.stringify(parts)}`),
    ...(spare > MAX_SPARE_SLOTS ? [`${spare} slots that nobody uses`] : []),
    ...tables.groups.map((element) => `a member, ${element}`),
    ...tables.peers.map((element) => `a peer, ${element}`),
    ...plugged.map(({ number, address }) =>
      slots.get(number)?.address === address
        ? `${address} is plugged in`
        : `${address} is plugged in where ${slots.get(number)?.address} is`,
    ),
    ...(await placeFacts(instance, processes, slots)),
  ]
}

/** Behind which address each run is: by the namespace its processes are really in. */
async function placeFacts(
  instance: Instance,
  processes: Process[],
  slots: Map<string, Slot>,
): Promise<string[]> {
  const { namespacePrefix } = namesOf(instance)
  const addresses = new Map<number, string | null>()
  for (const [number, { address }] of slots) {
    const path = `/run/netns/${namespacePrefix}${number}`
    const inode = await stat(path).then(
      ({ ino }) => ino,
      () => null,
    )
    if (inode !== null) addresses.set(inode, address)
  }
  const facts = new Set<string>()
  for (const process of processes) {
    const run = runOf(instance, process)
    // A gofer serves files from a namespace without any network.
    if (run === null || process.command.startsWith('runsc-gofer ')) continue
    const inode = await stat(`/proc/${process.pid}/ns/net`).then(
      ({ ino }) => ino,
      () => null,
    )
    const address = inode === null ? undefined : addresses.get(inode)
    if (address) facts.add(`${run} is behind ${address}`)
  }
  return [...facts]
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}
