// The engine is killed before and after each of its effects (reliability F1), and started again. Each time it
// finds itself right: the host has exactly what it lists, nothing is torn or left over, the caller's next try
// succeeds, and another machine has gone on running. `npm test` does so at a part of the effects.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from 'vitest'
import { reachedFailpoints } from '../support/criu.ts'
import { partOf } from '../support/part-of.ts'
import { runtimeDefaults } from '../../src/engine/oci/runtime/runtime.ts'
import { openEngineProcess } from './engine-process.ts'
import { after, createScenario, stepOf } from './failpoint-steps.ts'
import { IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite, kindOf } from './suite.ts'

/** One class is enough: what differs is the runtime's own, which does not die with the engine. */
const isolation = 'runc'
const runtimes = { ...runtimeDefaults, runsc: '/nowhere/runsc' }

let wishes: string
let host: Awaited<ReturnType<typeof openHostEngine>>
const suite = createSuite(
  async () => ({
    engine: host.engine(),
    configuredImage: '',
    reopen: host.reopen,
    close: async () => await host.close(),
  }),
  { isolation, image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

beforeAll(async () => {
  wishes = await mkdtemp('/var/tmp/berth-wishes-')
  host = await openHostEngine({ isolation, runtimes }, (options) => openEngineProcess(options, wishes))
  await suite.open()
})
afterAll(async () => {
  await suite.close()
  await rm(wishes, { recursive: true })
})

describe('a crash of the engine', () => {
  const bystander = suite.shared()
  /** In memory: it would be gone if the machine's processes were. */
  const mark = async () => (await suite.sh(bystander(), 'echo x >> /dev/shm/mark; cat /dev/shm/mark')).stdout

  it.each(partOf(reachedFailpoints, 10))(
    'before and after %s is made good by the next engine',
    async (name) => {
      onTestFailed(async () => await suite.reopen())
      const step = stepOf(name)
      const scenario = createScenario(host.engine, suite.specOf({ volume: { mount: '/data', gb: 1 } }), name)
      const marked = await mark()
      for (const when of ['before', 'after']) {
        await scenario.before(step)
        await writeFile(join(wishes, `${name}.${when}`), 'crash')
        expect([when, await kindOf(scenario.take(step))]).toEqual([when, 'engine_away'])

        await suite.reopen()
        // What is to be destroyed nobody wants any more.
        const wanted = step === 'destroy' ? [bystander().id] : [bystander().id, scenario.id]
        await host.engine().recover(wanted)
        await host.expectAsListed()
        await scenario.take(step)
        expect([when, await scenario.says(step)]).toEqual([when, after[step]])
      }
      await host.expectAsListed()
      await host.engine().destroy(scenario.id)
      expect(await mark()).toBe(`${marked}x\n`)
    },
  )
})
