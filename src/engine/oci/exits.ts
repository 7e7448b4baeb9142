// Learns that a run has ended and makes it a fact: conmon leaves the exit code in a file, the kernel counts
// the kills for memory in our cgroup. Told by the file system, and looked for besides, since a notification
// can be lost and a dead conmon notifies nobody.

import { watch, type FSWatcher } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Exit } from '../engine.ts'
import { countOomKills, killAll } from './cgroups.ts'
import { statusOf, getRuntime, type Host, type Machine } from './host.ts'
import { rotateLog } from './logs.ts'
import { isMonitorAlive } from './monitor.ts'
import { saveRecord } from './record.ts'
import { takeBack } from './remains.ts'

const LOOK_EVERY_MS = 500
const SIGKILL_CODE = 137

export function watchRuns(host: Host): { close(): void } {
  const byContainer = (name: string | null) => {
    const machine = host.machines.get(name?.replace(/-\d+$/, '') ?? '')
    if (machine)
      void settleEnd(host, machine).catch((error: unknown) => host.log.error({ error }, 'exit not recorded'))
  }
  const watcher: FSWatcher = watch(host.paths.exits, (_, name) => byContainer(name))
  const timer = setInterval(() => {
    for (const machine of host.machines.values()) {
      if (machine.record.state !== 'running') continue
      void lookAfter(host, machine).catch((error: unknown) =>
        host.log.error({ error }, 'machine not looked after'),
      )
    }
  }, LOOK_EVERY_MS)
  return {
    close: () => {
      watcher.close()
      clearInterval(timer)
    },
  }
}

async function lookAfter(host: Host, machine: Machine): Promise<void> {
  await settleEnd(host, machine)
  if (machine.record.state !== 'running') return
  await rotateLog(host, machine.record.spec.id, machine.record.generation)
  if (machine.record.monitor && isMonitorAlive(machine.record.monitor)) return
  // Its monitor is gone without a word: nobody keeps its log or would learn its exit code, so the run ends here.
  const { container } = host.paths.run(machine.record.spec.id, machine.record.generation)
  await settleEnd(host, machine)
  if (machine.record.state !== 'running') return
  const oomKilled = countOomKills(host.cgroups, container) > 0
  await killAll(host.cgroups, container)
  await recordEnd(host, machine, { code: SIGKILL_CODE, oomKilled, at: host.clock.now() })
}

/** Records the end of the current run if it has ended. Safe to call at any time, any number of times. */
export async function settleEnd(host: Host, machine: Machine): Promise<void> {
  const { record } = machine
  const { generation } = record
  if (record.state !== 'running') return
  const exit = await readExit(host, record.spec.id, generation)
  if (exit && record.state === 'running' && record.generation === generation)
    await recordEnd(host, machine, exit)
}

/** The exit that conmon wrote down, or null while the run goes on. Read before the cgroup is removed. */
export async function readExit(host: Host, id: string, generation: number): Promise<Exit | null> {
  const { exit, container } = host.paths.run(id, generation)
  try {
    const [text, { mtime }] = await Promise.all([readFile(exit, 'utf8'), stat(exit)])
    if (!/^\d+$/.test(text.trim())) return null
    const code = Number(text)
    // A machine whose child was killed for memory ends as it likes; only the death itself is told as such.
    return { code, oomKilled: code === SIGKILL_CODE && countOomKills(host.cgroups, container) > 0, at: mtime }
  } catch {
    return null
  }
}

async function recordEnd(host: Host, machine: Machine, exit: Exit): Promise<void> {
  const { record } = machine
  // The state changes before anything is awaited: two callers cannot both record one end.
  Object.assign(record, { state: 'exited', exit })
  machine.process = null
  machine.frozen = false
  machine.onThaw = []
  const run = host.paths.run(record.spec.id, record.generation)
  const runtime = getRuntime(host, record.spec.isolation)
  machine.cleanup = Promise.all([
    saveRecord(host.paths, record).then(() => takeBack(host, runtime, run)),
    host.network.detach(record.spec.id),
  ]).then(
    () => undefined,
    (error: unknown) =>
      host.log.error({ error, machine: record.spec.id }, 'the remains of a run were not removed'),
  )
  machine.markEnded()
  host.events.emit('ended', statusOf(machine))
}
