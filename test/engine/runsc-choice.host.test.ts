// Which gVisor a unit runs on: the first of the machine that passes its probe, and the same for the whole of a run.

import { existsSync, readlinkSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef } from '../../src/engine/engine.ts'
import { openOciEngine } from '../../src/engine/oci/oci-engine.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { runscCandidates } from '../../src/engine/oci/probes/runsc-candidates.ts'
import { processesOf } from '../support/host-state.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'

const candidates = await runscCandidates(driverDefaults)
const system = candidates.at(-1)?.path ?? ''
let broken: string
let preferred: string | null = null
let host: HostEngine
const suite = createHostSuite('gvisor', () => host)

/** Opens the engine with another preference each time. */
const open = async (runsc: string | null, between = async () => {}) => {
  preferred = runsc
  await suite.reopen(between)
}

describe.runIf(candidates.length > 0)('class gvisor', () => {
  beforeAll(async () => {
    const directory = await mkdtemp('/var/tmp/berth-runsc-')
    broken = join(directory, 'runsc')
    await writeFile(broken, '#!/bin/sh\n[ "$1" = --version ] && echo "runsc version broken" || exit 9\n')
    await chmod(broken, 0o755)
    host = await openHostEngine({ isolation: 'gvisor' }, (options) =>
      openOciEngine({ ...options, runtimes: { ...driverDefaults, preferredRunsc: preferred } }),
    )
    await suite.open()
  })
  afterAll(async () => {
    await suite.close()
    await rm(join(broken, '..'), { recursive: true })
  })

  it('uses the next program when the one that the operator prefers fails its probe, and says why', async () => {
    await open(broken)
    const { classes } = await host.engine().capabilities()
    const { available, detail } = classes.find(({ class: name }) => name === 'gvisor') ?? {}
    expect(available).toBe(true)
    expect(detail).toContain(`not used: ${broken} (BERTH_RUNSC): runsc broken could not run a container`)
  })

  it('keeps a run on the program that it was started with while new runs use another one', async () => {
    await open(system)
    const early = await suite.running()
    const first = await programOf(early)
    await open(null)
    const late = await suite.running()
    for (const machine of [early, late]) expect((await suite.sh(machine, 'echo on')).stdout).toBe('on\n')
    expect(await programOf(early)).toBe(first)
    expect((await programOf(late)) === first).toBe(candidates.length === 1)
    expect(existsSync(first)).toBe(true)
    await host.engine().destroy(early.id)
    await host.engine().destroy(late.id)
    await open(null)
    expect(existsSync(first)).toBe(candidates.length === 1)
  })
})

/** The file that the sandbox of a run executes. */
async function programOf({ id }: MachineRef): Promise<string> {
  const sandbox = (await processesOf([`${id}-`])).find(({ command }) => command.startsWith('runsc-sandbox '))
  return readlinkSync(`/proc/${sandbox?.pid ?? 0}/exe`)
}
