// A host that loses its power, as far as one instance can tell: every process of it dies at once, and what the
// kernel kept for it in memory is gone. Only the data directory is left.

import { readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openCgroups } from '../../src/engine/oci/kernel/cgroups.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { run } from '../../src/lib/process.ts'
import { type Instance, runDirOf } from '../../src/supervisor/instance.ts'
import { type Berth, eventually } from './berth.ts'
import { cleanHost, hostStateOf, namesOnHost, processesOf } from './host-state.ts'

/** The next start on the same data directory finds a host that has just come up. */
export async function cutPower(berth: Berth): Promise<void> {
  const instance = await berth.instance()
  const supervisor = await berth.supervisorPid()
  const roles = await Promise.all((['engine', 'server', 'gateway'] as const).map((role) => berth.pidOf(role)))
  const own = [supervisor, ...roles.filter((pid) => pid !== null)]
  // Stopped first: nobody is to see another die, and do something about it.
  for (const signal of ['SIGSTOP', 'SIGKILL'] as const) signalAll(own, signal)
  await clearHost(instance, berth.dataDir, berth.namespace)
  await berth.exitCode()
}

/**
 * Takes everything of an instance off the host, whatever state it is in; its data directory stays. `network`: the path of
 * the network namespace that it ran in, if that is not this one.
 */
export async function clearHost(
  instance: Instance,
  dataDir: string,
  network: string | null = null,
): Promise<void> {
  await endProcesses(instance, dataDir)
  await removeGroups(instance)
  await removeNetwork(instance, network)
  await run('umount', [join(dataDir, 'pool')], { timeoutMs: 20_000 })
  await rm(runDirOf(instance), { recursive: true, force: true })
  await eventually(async () => {
    const left = await hostStateOf(instance, dataDir, network)
    const differs = Object.values(left).some((list) => list.length > 0)
    if (differs) throw new Error(`the host still has ${JSON.stringify({ ...cleanHost, ...left })}`)
  })
}

/** All at once, those that stand still too: a frozen process dies when it is thawed. */
export async function endProcesses(instance: Instance, dataDir: string): Promise<void> {
  const { main, parent } = openCgroups(instance.id)
  await eventually(async () => {
    const processes = await processesOf(namesOnHost(instance, dataDir))
    signalAll(
      processes.map(({ pid }) => pid),
      'SIGKILL',
    )
    for (const group of await readdir(join(main, parent), { recursive: true }).catch(() => [])) {
      for (const [file, text] of [
        ['freezer.state', 'THAWED'],
        ['cgroup.freeze', '0'],
      ] as const)
        await writeFile(join(main, parent, group, file), text, { flag: 'r+' }).catch(() => {})
    }
    if (processes.length > 0) throw new Error(`still there: ${JSON.stringify(processes)}`)
  })
}

async function removeGroups({ id }: Instance): Promise<void> {
  const { trees, parent } = openCgroups(id)
  for (const tree of Object.values(trees)) await removeTree(join(tree, parent))
}

/** A group's own files go with its directory. */
async function removeTree(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name))
  await rmdir(path).catch(() => {})
}

async function removeNetwork(instance: Instance, network: string | null): Promise<void> {
  const { table, namespacePrefix, gateway, subnet } = namesOf(instance)
  const options = { timeoutMs: 60_000 }
  const inside = async (command: string, args: string[], stdin = '') =>
    network === null
      ? await run(command, args, { ...options, stdin })
      : await run('nsenter', [`--net=${network}`, command, ...args], { ...options, stdin })
  const namespaces = (await readdir('/run/netns').catch(() => [])).filter((name) =>
    name.startsWith(namespacePrefix),
  )
  const commands = [
    ...namespaces.map((name) => `netns del ${name}`),
    `addr del ${gateway}/32 dev lo`,
    `route del blackhole ${subnet}`,
  ]
  await inside('ip', ['-force', '-batch', '-'], `${commands.join('\n')}\n`)
  for (const family of ['inet', 'netdev', 'ip']) await inside('nft', ['delete', 'table', family, table])
}

/** Every process of an instance stands still, until the function that is returned is called. */
export async function hang(berth: Berth): Promise<() => void> {
  const names = namesOnHost(await berth.instance(), berth.dataDir)
  const own = await Promise.all(
    (['engine', 'gateway'] as const).map(async (role) => await berth.pidsOf(role)),
  )
  const others = (await processesOf(names)).map(({ pid }) => pid)
  // First what would notice that another one stands still.
  const pids = [...new Set([await berth.supervisorPid(), ...own.flat(), ...others])]
  signalAll(pids, 'SIGSTOP')
  return () => signalAll(pids, 'SIGCONT')
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }
}
