// Many units at once and one after another, in each isolation class, without leaving anything behind (reliability L8).
// `npm test` covers one of the classes with fewer units.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isolationClasses } from '../../src/engine/engine.ts'
import { isReadyName } from '../../src/engine/oci/paths.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll, exec, listUnits } from '../support/berth-units.ts'
import { cleanHost } from '../support/host-state.ts'
import { isDeep, partOf, testSeed } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const COUNT = 20
const CHURN = isDeep ? 300 : 15
/** Allows for connections that are open at the moment. */
const FEW = 10
/** That the engine holds of a machine made ahead. */
const FILES_OF_ONE_READY = 2
const ROLES = ['engine', 'server', 'gateway'] as const

describe.each(partOf(isolationClasses, 1, testSeed + 1))('Berth with %s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  const namesIn = async (directory: string) => await readdir(join(berth.dataDir, directory))
  const ofUnits = async (directory: string) => (await namesIn(directory)).filter((name) => !isReadyName(name))

  it(`creates ${COUNT} units at once, each with its own name and the kernel of its class`, async () => {
    const names = Array.from({ length: COUNT }, (_, index) => `unit-${index}`)
    const units = await Promise.all(
      names.map((name) => createUnit(berth, { name, image: 'berth.local/debian:12', size: 'nano' })),
    )
    const answers = await Promise.all(
      units.map((unit) => exec(berth, unit, ['sh', '-c', 'hostname; cat /proc/version'])),
    )
    const lines = answers.map(({ stdout }) => stdout.trim().split('\n'))
    expect(lines.map(([hostname]) => hostname)).toEqual(names)

    const hostKernel = (await readFile('/proc/version', 'utf8')).trim()
    const isHostKernel = lines.map(([, kernel]) => kernel === hostKernel)
    expect(isHostKernel).toEqual(names.map(() => isolation === 'runc'))
  })

  it('leaves nothing of a destroyed unit on the host or on disk', async () => {
    await destroyAll(berth)
    expect(await listUnits(berth)).toEqual([])
    await eventually(async () => {
      const everything = Object.values(await berth.hostState()).flat()
      expect(everything.filter((line) => line.includes('unit_'))).toEqual([])
      for (const directory of ['pool/disks', 'pool/volumes', 'machines']) {
        expect(await ofUnits(directory)).toEqual([])
      }
    })
  })

  it('leaks no file descriptor or host resource when many units come and go', async () => {
    const openFiles = async () =>
      await Promise.all(
        ROLES.map(async (role) => (await readdir(`/proc/${await berth.pidOf(role)}/fd`)).length),
      )
    const kinds = async () =>
      Object.entries(await berth.hostState())
        // Namespaces and links are created in advance, and cgroups are removed a moment after their team.
        .filter(([kind]) => !['namespaces', 'links', 'routes', 'cgroups', 'processes'].includes(kind))
        .map(([kind, list]) => [kind, list.filter((each) => !each.includes('/run/netns/')).length])
    const spec = { image: 'berth.local/debian:12', size: 'nano' }
    const churn = async (name: string) => {
      const unit = await createUnit(berth, { ...spec, name })
      expect((await exec(berth, unit, ['echo', name])).stdout).toBe(`${name}\n`)
      expect((await berth.call('DELETE', `/v1/units/${unit.id}`)).status).toBe(200)
    }
    await churn('first')
    const [files, things] = [await openFiles(), await kinds()]
    for (let n = 0; n < CHURN; n += 1) await churn(`churned-${n}`)
    await eventually(async () => {
      const now = await openFiles()
      const waiting = (await namesIn('machines')).filter(isReadyName).length
      for (const [i, count] of now.entries())
        expect(count, ROLES[i]).toBeLessThanOrEqual((files[i] ?? 0) + FEW + waiting * FILES_OF_ONE_READY)
      expect(await kinds()).toEqual(things)
      expect(await ofUnits('machines')).toEqual([])
    })
  }, 3_600_000)

  it('leaves nothing on the host once it is stopped', async () => {
    expect(await berth.pressCtrlC()).toBe(0)
    await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  })
})
