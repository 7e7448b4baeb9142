// The operation that each of the engine's failpoints lies in, and the way of one machine from operation to
// operation: what the tests that bring trouble to all of them have in common.

import type { Engine, MachineRef, MachineSpec, MachineStatus, RunSpec } from '../../src/engine/engine.ts'
import type { EngineFailpoint } from '../../src/engine/oci/failpoints.ts'
import { isEngineError } from '../../src/engine/errors.ts'
import { eventually } from './suite.ts'

export type Step =
  | 'create'
  | 'start'
  | 'process'
  | 'freeze'
  | 'thaw'
  | 'fork'
  | 'suspend'
  | 'stop'
  | 'destroy'

/** Files, so that the jail that writes them is passed; a process that heeds SIGTERM. */
const run: RunSpec = {
  hostname: 'unit',
  entrypoint: ['bash', '-c', 'trap "exit 3" TERM; while :; do sleep 0.05; done'],
  cmd: [],
  env: {},
  files: [{ path: '/srv/boot', content: Buffer.from('boot\n') }],
  searchDomain: 's.internal',
  egress: null,
}

export function stepOf(name: EngineFailpoint): Step {
  const [, area = ''] = name.split('.')
  if (area === 'exit' || area === 'cleanup') return 'stop'
  if (area === 'checkpoint') return name === 'engine.checkpoint.consume' ? 'start' : 'suspend'
  return area as Step
}

export function createScenario(engine: () => Engine, spec: MachineSpec, name: EngineFailpoint) {
  let generation = 0
  // Who heeds SIGTERM need not be killed.
  const graceMs = name === 'engine.stop.kill' ? 0 : 1500
  const ref = (): MachineRef => ({ id: spec.id, generation })
  /** Two at once, so that they are there together or not at all. */
  const copies = ['a', 'b'].map((name) => `${spec.id}${name}`)
  const background = {
    id: `proc_${spec.id}`,
    argv: ['sh', '-c', 'echo said; exit 5'],
    shown: ['sh'],
    env: {},
    cwd: null,
    stdin: null,
    keepsAwake: false,
  }
  const processNow = async () =>
    (await engine().processes(spec.id)).find(({ id }) => id === background.id) ?? null

  const scenario = {
    id: spec.id,

    status: async (): Promise<MachineStatus | undefined> =>
      (await engine().list()).find((machine) => machine.id === spec.id),

    /** Brings the machine to where the step begins, from wherever it is. */
    async before(step: Step): Promise<void> {
      // Those two concern a machine that has never run.
      if (step === 'create' || name === 'engine.start.etc') await engine().destroy(spec.id)
      if (step === 'create') return
      const found = await scenario.status()
      if (!found) await engine().create(spec)
      if (step === 'start') {
        await engine().stop(ref(), 0)
        generation += 1
        return
      }
      if (found?.state !== 'running') {
        generation += 1
        await engine().start(ref(), run)
      }
      if (step === 'thaw') await engine().freeze(ref())
      else await engine().thaw(ref())
      if (step === 'process') await engine().forgetProcess(spec.id, background.id)
      if (step === 'fork') for (const id of copies) await engine().destroy(id)
      // Nothing is flushed that is not there; what is appended is not written out by the file's being closed.
      if (name === 'engine.fork.flush') await scenario.sh('head -c 20M /dev/zero >> /data/unwritten')
    },

    /** As a caller does who may have tried before: what was cut short is done with a newer generation. */
    async take(step: Step): Promise<void> {
      const actions = {
        create: async () => void (await engine().create(spec)),
        start: async () =>
          await engine()
            .start(ref(), run)
            .catch(async (error: unknown) => {
              if (!isEngineError(error, 'run_lost')) throw error
              generation += 1
              await engine().start(ref(), run)
            }),
        process: async () => {
          // Nobody saw how it ended: a caller that wants it begins it anew.
          if ((await processNow())?.state === 'lost') await engine().forgetProcess(spec.id, background.id)
          await engine().startProcess(ref(), background)
          await eventually(async () => ((await processNow())?.state === 'running' ? null : true))
        },
        freeze: async () => await engine().freeze(ref()),
        thaw: async () => await engine().thaw(ref()),
        fork: async () =>
          void (await engine().fork(
            copies.map((id) => ({ id, source: ref(), networkGroup: spec.networkGroup, run: null })),
          )),
        suspend: async () => void (await engine().suspend(ref(), graceMs)),
        stop: async () => await engine().stop(ref(), graceMs),
        destroy: async () => await engine().destroy(spec.id),
      }
      await actions[step]()
    },

    /** What a machine says that is where it should be after a step: nothing where there is none. */
    async says(step: Step): Promise<string> {
      const found = await scenario.status()
      if (!found) return 'absent'
      if (step === 'fork') {
        const made = (await engine().list()).filter(({ id }) => copies.includes(id))
        return `${await scenario.asked()}${made.map(({ state }) => state).join(' ')}`
      }
      if (step === 'process') {
        const { state, exitCode } = (await processNow()) ?? { state: 'none', exitCode: null }
        const said = await engine().processOutput(spec.id, background.id, 0, 100)
        return `${state} ${exitCode} ${said.map(({ data }) => data.toString()).join('')}`
      }
      if (found.state !== 'running' || found.frozen) return found.frozen ? 'frozen' : found.state
      return step === 'start' || step === 'thaw' ? await scenario.asked() : 'running'
    },

    /** Its network files, its boot file and what it keeps, of which it keeps more each time. */
    asked: async (): Promise<string> =>
      await scenario.sh('echo x >> /data/kept; cat /srv/boot; grep -c nameserver /etc/resolv.conf; hostname'),

    async sh(script: string): Promise<string> {
      let output = ''
      const argv = ['sh', '-c', script]
      await engine().exec(ref(), { argv, stdin: null, timeoutMs: 20_000 }, ({ data }) => {
        output += data.toString()
      })
      return output
    },
  }
  return scenario
}

/** What `says` answers after each step. */
export const after: Record<Step, string> = {
  create: 'created',
  start: 'boot\n1\nunit\n',
  process: 'exited 5 said\n',
  freeze: 'frozen',
  thaw: 'boot\n1\nunit\n',
  fork: 'boot\n1\nunit\ncreated created',
  suspend: 'exited',
  stop: 'exited',
  destroy: 'absent',
}
