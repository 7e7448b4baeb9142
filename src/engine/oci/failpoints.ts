// The engine's effects on the host that a crash or a failure could interrupt, by name: tests inject a fault into each
// (lib/failpoints.ts), so a new effect is tested by adding a line here.

export const engineFailpoints = [
  'engine.create.disk',
  'engine.create.volume-data',
  'engine.create.network',
  'engine.create.record',
  'engine.start.etc',
  'engine.start.record',
  'engine.start.network',
  'engine.start.bundle',
  'engine.start.root',
  'engine.start.boot-files',
  'engine.start.monitor',
  'engine.start.go',
  'engine.start.running',
  'engine.stop.signal',
  'engine.stop.kill',
  'engine.exit.record',
  'engine.cleanup.processes',
  'engine.cleanup.runtime',
  'engine.cleanup.cgroup',
  'engine.cleanup.files',
  'engine.cleanup.network',
  'engine.destroy.kill',
  'engine.destroy.network',
  'engine.destroy.disk',
  'engine.destroy.record',
  'engine.freeze',
  'engine.thaw',
  'engine.checkpoint.dump',
  'engine.checkpoint.commit',
  'engine.checkpoint.consume',
  'engine.process.record',
  'engine.process.keeper',
  'engine.process.launch',
  'engine.process.end',
  'engine.fork.network',
  'engine.fork.flush',
  'engine.fork.quiesce',
  'engine.fork.snapshot',
  'engine.fork.resume',
  'engine.fork.disk',
  'engine.fork.begin',
  'engine.fork.record',
  'engine.fork.end',
] as const

export type EngineFailpoint = (typeof engineFailpoints)[number]

/** Runs one of them; a test may make it fail, run twice, or kill the process. */
export type Effect = <T>(name: EngineFailpoint, work: () => Promise<T>) => Promise<T>
