// Kills the engine before and after each of its effects (reliability F1) and starts it again. Each time the host must
// match what the engine lists, nothing may be torn or left over, the caller’s retry must succeed, and another machine
// must have kept running. `npm test` covers a part of the effects.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from 'vitest'
import { reachedFailpoints } from '../support/criu.ts'
import { partOf } from '../support/part-of.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { openEngineProcess } from './engine-process.ts'
import { after, createScenario, stepOf } from './failpoint-steps.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { kindOf } from './suite.ts'

/** One class is enough: the classes differ only in the runtime, which does not die with the engine. */
const isolation = 'runc'
const runtimes = { ...driverDefaults, runsc: '/nowhere/runsc' }

let wishes: string
let host: HostEngine
const suite = createHostSuite(isolation, () => host)

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
  /** In memory, so it would be lost with the machine’s processes. */
  const mark = async () => (await suite.sh(bystander(), 'echo x >> /dev/shm/mark; cat /dev/shm/mark')).stdout

  it.each(partOf(reachedFailpoints, 10))(
    'before or after %s is repaired by the next engine',
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
        // A machine that is being destroyed is no longer wanted.
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
