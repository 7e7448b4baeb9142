// Finds out whether memory can be kept on this host, by doing what machines do: a container with its own network and
// pipes stands still, is dumped, killed, and restored in another network, and must go on where it was.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run } from '../kernel/programs.ts'
import { cgroupPath, type Cgroups, freezeGroup, killAll, openCgroups } from '../kernel/cgroups.ts'
import { removeCgroup, removeParent } from '../kernel/cgroups.ts'
import { reapOrphans } from '../kernel/children.ts'
import { installedMonitor } from '../runtime/kept-monitor.ts'
import { endMonitor, forgetExit, startMonitor } from '../runtime/monitor.ts'
import { unchanged } from '../kernel/team-groups.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { Paths, RunPaths } from '../paths.ts'
import { probeConfig, probeNamespace } from './bundle.ts'
import { forgetContainer } from '../runtime/by-program.ts'
import type { Driver, Memory, Restored } from '../runtime/driver.ts'

const PROBE_TIMEOUT_MS = 20_000
const COUNTS_WITHIN_MS = 5000
/** A restored one may take so many times as long as the start before it: on a busy host both take longer. */
const TIMES_A_START = 10
const LOOK_EVERY_MS = 10

/**
 * It prints 1, 2, 3: a restored one goes on after the last number, a restarted one prints 1 again. It reads them from an open
 * file that is on no disk any more. A child of it listens.
 */
const COUNTER = `
PATH=/helper; busybox seq 1 2000 > /counts; exec 3</counts; busybox rm /counts
busybox nc -ll -p 8000 -e /helper/busybox echo here &
while read -r n <&3; do echo $n; busybox sleep 0.02; done`
const VISIT = '[ "$(/helper/busybox nc 127.0.0.1 8000 </dev/null)" = here ]'

type Probe = {
  paths: Paths
  run: RunPaths
  driver: Driver
  memory: Memory
  cgroups: Cgroups
  log: string
}

/** Returns null if it worked, else the error. */
export async function probeCheckpoint(
  paths: Paths,
  driver: Driver,
  memory: Memory,
  instanceId: string,
): Promise<string | null> {
  // The run of a machine that does not exist: if this process dies, the next engine removes it.
  const probe = {
    paths,
    run: paths.run(`probe-${driver.class}`, 0),
    driver,
    memory,
    cgroups: openCgroups(instanceId),
    log: '',
  }
  probe.log = join(probe.run.dir, 'log')
  const namespace = probeNamespace(driver, instanceId)
  try {
    await clear(probe)
    return await saveAndRestore(probe, namespace)
  } catch (error) {
    return String(error instanceof Error ? error.message : error).slice(-300)
  } finally {
    await clear(probe)
    void reapOrphans()
    await ip(['netns', 'delete', namespace])
    await removeParent(probe.cgroups)
  }
}

function ip(args: string[]) {
  return run('ip', args, { timeoutMs: PROBE_TIMEOUT_MS })
}

async function makeNamespace(namespace: string): Promise<void> {
  await ip(['netns', 'delete', namespace])
  await ip(['netns', 'add', namespace])
  await ip(['-netns', namespace, 'link', 'set', 'lo', 'up'])
}

async function saveAndRestore(probe: Probe, namespace: string): Promise<string | null> {
  const { run: paths, driver, memory, cgroups } = probe
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
  const images = join(paths.dir, 'memory')
  for (const directory of [paths.rootfs, images]) await mkdir(directory, { recursive: true, mode: 0o700 })
  await makeNamespace(namespace)
  await writeConfig(probe, namespace)

  const startedMs = performance.now()
  const started = await start(probe, null, signal)
  if (started !== null) return started
  const go = await driver.start(paths, signal)
  if (go.kind === 'failed') return go.reason
  await countsPast(probe, 2)
  const patienceMs = Math.max(COUNTS_WITHIN_MS, TIMES_A_START * (performance.now() - startedMs))
  if (memory.standing) await memory.standing.hold(paths.container, () => {}, signal)
  else if (!(await freezeGroup(cgroups, paths.container))) return 'it could not be frozen'
  await memory.save(paths.container, images, { timeoutMs: PROBE_TIMEOUT_MS, signal, ends: true })
  if (!(await killAll(cgroups, paths.container))) return 'it could not be killed'
  await forget(probe)

  await makeNamespace(namespace)
  const saved = await lastCount(probe)
  const restored = await start(
    probe,
    await memory.prepare(images, 'probe', `/run/netns/${namespace}`),
    signal,
  )
  if (restored !== null) return restored
  if (!(await memory.answers(paths.container, ['/helper/busybox', 'sh', '-c', VISIT], signal)))
    return 'what listened did not answer'
  const withinMs = Math.min(patienceMs, PROBE_TIMEOUT_MS)
  return (await countsPast(probe, saved, withinMs)) ? null : 'it did not go on where it stood'
}

async function writeConfig(
  { paths, run: { config, rootfs, container }, ...probe }: Probe,
  namespace: string,
) {
  const bundle = probeConfig(paths, namespace, rootfs, ['/helper/busybox', 'sh', '-c', COUNTER])
  const inGroup = {
    ...bundle,
    linux: { ...bundle.linux, cgroupsPath: cgroupPath(probe.cgroups, container) },
  }
  await writeFile(config, JSON.stringify(probe.memory.inConfig(inGroup)), { mode: 0o600 })
}

/** Returns null, or the reason of the failure. */
async function start(
  { run: paths, driver, log, ...probe }: Probe,
  restored: Restored | null,
  signal: AbortSignal,
): Promise<string | null> {
  const started = await startMonitor(
    driver,
    paths,
    { monitor: installedMonitor, logFile: log, exitDir: probe.paths.exits, charge: unchanged, stdin: null },
    signal,
    restored,
  )
  return started.kind === 'started' ? null : started.reason.trim().slice(-300)
}

/** Whether it prints a larger number in time, and none twice. */
async function countsPast(probe: Probe, number: number, withinMs = COUNTS_WITHIN_MS): Promise<boolean> {
  const rounds = withinMs / LOOK_EVERY_MS
  for (let round = 0; round < rounds; round += 1) {
    if ((await lastCount(probe)) > number) break
    await delay(LOOK_EVERY_MS)
  }
  const counts = await countsOf(probe)
  return (counts.at(-1) ?? 0) > number && counts.every((count, i) => count === i + 1)
}

async function lastCount(probe: Probe): Promise<number> {
  return (await countsOf(probe)).at(-1) ?? 0
}

async function countsOf({ log }: Probe): Promise<number[]> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return [...text.matchAll(/ stdout F (\d+)$/gm)].map(([, count]) => Number(count))
}

/** The monitor of the first run must be gone, or it would be taken for that of the second. */
async function forget({ paths, run: runPaths, cgroups }: Probe): Promise<void> {
  await endMonitor(runPaths)
  await forgetContainer(paths.runtimeRoot, runPaths.container)
  removeCgroup(cgroups, runPaths.container)
  await forgetExit(runPaths)
  await rm(runPaths.monitorPid, { force: true })
}

async function clear(probe: Probe): Promise<void> {
  await endMonitor(probe.run)
  await killAll(probe.cgroups, probe.run.container)
  await forget(probe)
  await removeTree(probe.run.dir)
}
