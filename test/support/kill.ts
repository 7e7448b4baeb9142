// Sudden deaths: of Berth's own processes, and of those that make up a machine. Everything here is SIGKILL,
// and ends when the process is known to be dead.

import { readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { runDirOf } from '../../src/supervisor/instance.ts'
import { type Berth, eventually } from './berth.ts'
import { madeAsOf } from './ready-facts.ts'
import { namesOnHost, type Process, processesOf } from './host-state.ts'

export type Role = 'engine' | 'server' | 'gateway'

/** Answers at once: the supervisor starts it again by itself. False: it was not running just now. */
export async function killRole(berth: Berth, role: Role): Promise<boolean> {
  const pid = await berth.pidOf(role)
  return pid !== null && (await kill(pid))
}

/** Resolves when another process of the role runs, which need not be ready yet. */
export async function restartRole(berth: Berth, role: Role): Promise<void> {
  const before = await berth.pidOf(role)
  if (before === null) throw new Error(`the ${role} does not run`)
  await kill(before)
  await eventually(async () => {
    const now = await berth.pidOf(role)
    if (now === null || now === before) throw new Error(`the ${role} was not started again`)
  })
}

/** The one Postgres of this instance that its supervisor started; null while it is being started again. */
export async function postmasterOf(berth: Berth): Promise<number | null> {
  const runDir = runDirOf(await berth.instance())
  const found = (await ownProcesses(berth)).find(({ command }) =>
    command.includes(`${runDir}/postgres/files/`),
  )
  return found?.pid ?? null
}

export async function killPostgres(berth: Berth): Promise<boolean> {
  const pid = await postmasterOf(berth)
  return pid !== null && (await kill(pid))
}

/** Everything but machines ends with it; the next start on this data directory waits for nobody. */
export async function killSupervisor(berth: Berth): Promise<void> {
  await kill(await berth.supervisorPid())
  await berth.exitCode()
}

/** What a run of a machine consists of on the host. In the class runc `sandbox` and `gofer` do not exist. */
export const runParts = ['monitor', 'init', 'sandbox', 'gofer'] as const
export type RunPart = (typeof runParts)[number]

/** Kills one process of the unit's current run. False: the run has no such process. */
export async function killRunPart(berth: Berth, unitId: string, part: RunPart): Promise<boolean> {
  const pid = await findRunPart(berth, unitId, part)
  return pid !== null && (await kill(pid))
}

async function findRunPart(berth: Berth, unitId: string, part: RunPart): Promise<number | null> {
  const processes = await ownProcesses(berth)
  // A first run that was made ahead goes by the name under which it was made.
  const madeAs = await madeAsOf(berth.dataDir, unitId)
  const names = new RegExp(`^conmon .* --cid (?:${unitId}-|${madeAs ?? unitId} )`)
  const monitor = processes.find(({ command }) => names.test(command))
  if (part === 'monitor') return monitor?.pid ?? null
  const run = monitor && / --cid (\S+)/.exec(monitor.command)?.[1]
  if (!run) return null
  if (part === 'init') {
    const text = await readFile(join(runDirOf(await berth.instance()), 'runs', run, 'pid'), 'utf8').catch(
      () => '',
    )
    return Number(text) || null
  }
  const found = processes.find(({ command, cgroup }) => {
    return command.startsWith(`runsc-${part} `) && cgroup.includes(`/${run}`)
  })
  return found?.pid ?? null
}

async function ownProcesses(berth: Berth): Promise<Process[]> {
  return await processesOf(namesOnHost(await berth.instance(), berth.dataDir))
}

/** Whether the kernel says what killed a process to others than its parent: from 6.15 on. */
export function kernelTellsDeaths(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return major > 6 || (major === 6 && minor >= 15)
}

/** False: it had ended before. */
async function kill(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}
