// Many units at once, in each isolation class, and nothing of them left afterwards. `npm test` does so in one
// of the classes.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isolationClasses } from '../../src/engine/engine.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll, exec, listUnits } from '../support/berth-units.ts'
import { cleanHost } from '../support/host-state.ts'
import { partOf, testSeed } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const COUNT = 20

describe.each(partOf(isolationClasses, 1, testSeed + 1))('%s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })

  it(`makes ${COUNT} units at once, each with its own name and the kernel of its class`, async () => {
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

  it('leaves nothing of a destroyed unit, on the host or on disk', async () => {
    await destroyAll(berth)
    expect(await listUnits(berth)).toEqual([])
    await eventually(async () => {
      const everything = Object.values(await berth.hostState()).flat()
      expect(everything.filter((line) => line.includes('unit_'))).toEqual([])
      for (const directory of ['pool/disks', 'pool/volumes', 'machines']) {
        expect(await readdir(join(berth.dataDir, directory))).toEqual([])
      }
    })
  })

  it('leaves nothing at all on the host once Berth is stopped', async () => {
    expect(await berth.pressCtrlC()).toBe(0)
    await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  })
})
