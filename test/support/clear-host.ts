// Global setup of the tests on real runtimes: at the end of a run, what failed tests left on the host is taken off it, if it
// was not at the end of their file (clear-afterwards.ts). A test that passes has removed its own (host-state.ts proves it);
// this is for those that broke half way.

import { mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type RunResult, run } from '../../src/lib/process.ts'
import { findInstance, type Instance, runDirOf } from '../../src/supervisor/instance.ts'
import { hostStateOf, namesOnHost, processesOf } from './host-state.ts'
import { forgetDataDir, notedIn, NOTES_VARIABLE } from './instances.ts'

const ROUNDS = 50

export async function setup(): Promise<() => Promise<void>> {
  const notes = await mkdtemp(join(tmpdir(), 'berth-instances-'))
  process.env[NOTES_VARIABLE] = notes
  return async () => {
    const { dataDirs, namespaces } = await notedIn(notes)
    for (const dataDir of dataDirs) await clear(dataDir)
    for (const name of namespaces) await attempt('ip', 'netns', 'delete', name)
    await rm(notes, { recursive: true })
  }
}

/** Does what removes an instance in order. Where that fails, takes the instance off the host, and throws why it failed. */
export async function removeOrClear(dataDir: string, remove: () => Promise<void>): Promise<void> {
  try {
    await remove()
  } catch (error) {
    await clear(dataDir)
    throw error
  }
}

export async function clear(dataDir: string): Promise<void> {
  const instance = await findInstance(dataDir).catch(() => null)
  process.stderr.write(`A failed test left ${dataDir}; taking it off the host.\n`)
  if (instance !== null) {
    await endProcesses(instance, dataDir)
    await removeFromKernel(instance, dataDir)
    await rm(runDirOf(instance), { recursive: true, force: true })
  }
  await rm(dataDir, { recursive: true, force: true })
  await forgetDataDir(dataDir)
}

/** Berth first, which would start others again, then what it had started. */
async function endProcesses(instance: Instance, dataDir: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    await thaw(instance, dataDir)
    const pids = await withSetting(`BERTH_DATA_DIR=${dataDir}`)
    const machines = await processesOf(namesOnHost(instance, dataDir))
    const all = new Set([...pids, ...machines.map(({ pid }) => pid)])
    if (all.size === 0) return
    for (const pid of all) kill(pid)
    await delay(100)
  }
}

async function removeFromKernel(instance: Instance, dataDir: string): Promise<void> {
  const state = await hostStateOf(instance, dataDir)
  const mountPoints = state.mounts.map((line) => line.split(' ')[4] ?? '')
  for (const mountPoint of mountPoints.toReversed()) await attempt('umount', '--lazy', mountPoint)
  for (const line of state.namespaces) await attempt('ip', 'netns', 'delete', line.split(' ')[0] ?? '')
  // One that stays discards what the host itself sends there.
  for (const line of state.addresses) await attempt('ip', 'address', 'delete', ...addressOf(line))
  for (const line of state.routes.filter((each) => each.startsWith('blackhole ')))
    await attempt('ip', 'route', 'delete', 'blackhole', line.split(' ')[1] ?? '')
  for (const link of state.links) await attempt('ip', 'link', 'delete', link)
  for (const table of state.tables) await attempt('nft', 'delete', ...table.split(' '))
  for (const file of state.loopDevices) {
    const devices = (await attempt('losetup', '--noheadings', '--output', 'NAME', '--associated', file))
      .stdout
    for (const device of devices.split('\n').filter(Boolean)) await attempt('losetup', '--detach', device)
  }
  for (const group of state.cgroups) await removeGroup(group)
}

/** What `ip -o address` wrote: `1: lo    inet 10.1.0.1/32 scope global lo …`. */
function addressOf(line: string): string[] {
  const [, device = '', , address = ''] = line.split(/\s+/)
  return [address, 'dev', device]
}

/** A frozen process does not end. */
async function thaw(instance: Instance, dataDir: string): Promise<void> {
  const { cgroups } = await hostStateOf(instance, dataDir)
  for (const group of cgroups)
    for (const each of [group, ...(await groupsBelow(group))]) {
      await writeFile(join(each, 'freezer.state'), 'THAWED', { flag: 'r+' }).catch(() => {})
      await writeFile(join(each, 'cgroup.freeze'), '0', { flag: 'r+' }).catch(() => {})
    }
}

async function removeGroup(group: string): Promise<void> {
  for (const each of [...(await groupsBelow(group)).toReversed(), group]) await rmdir(each).catch(() => {})
}

async function groupsBelow(group: string): Promise<string[]> {
  const entries = await readdir(group, { withFileTypes: true, recursive: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name))
}

async function withSetting(setting: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const environments = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')),
  )
  return pids.filter((_, index) => environments[index]?.split('\0').includes(setting))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended meanwhile.
  }
}

/** What cannot be removed any more is gone already, or is told by the next run's doctor. */
async function attempt(command: string, ...args: string[]): Promise<RunResult> {
  return await run(command, args, { timeoutMs: 20_000 })
}
