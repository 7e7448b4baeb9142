// The engine of another machine, whose wall clock is not the server's. When a run ended is told by the host's clock and
// billed, so it is corrected before anything above sees it.

import type { Engine, MachineStatus } from './engine.ts'

/** `aheadMs`: by how much the clock of the host is ahead. */
export function correctTimes(engine: Engine, aheadMs: () => number): Engine {
  const corrected = (status: MachineStatus): MachineStatus => {
    if (!status.exit) return status
    return { ...status, exit: { ...status.exit, at: new Date(status.exit.at.getTime() - aheadMs()) } }
  }
  const changed: Pick<Engine, 'list' | 'create' | 'watchExits'> = {
    list: async () => (await engine.list()).map(corrected),
    create: async (machine) => corrected(await engine.create(machine)),
    watchExits: async (onExit, signal) =>
      await engine.watchExits((status) => onExit(corrected(status)), signal),
  }
  return new Proxy(engine, {
    get: (target, name: keyof Engine) => changed[name as keyof typeof changed] ?? target[name],
  })
}
