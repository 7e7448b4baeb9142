import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

export function recoverClaims(suite: Suite): void {
  test('recover keeps the machines that are wanted and removes every other', async () => {
    const wanted = await suite.running()
    const wantedToo = await suite.create()
    const unwanted = await suite.running()
    const unwantedToo = await suite.create()
    const others = (await suite.engine().list())
      .map((machine) => machine.id)
      .filter((id) => ![wanted, wantedToo, unwanted, unwantedToo].some((known) => known.id === id))
    const report = await suite.engine().recover([wanted.id, wantedToo.id, 'unit_not_here', ...others])
    expect(report).toMatchObject({ removed: 2, lost: 0 })
    expect(report.adopted).toBeGreaterThanOrEqual(1)
    expect(await suite.status(unwanted.id)).toBeUndefined()
    expect(await suite.status(unwantedToo.id)).toBeUndefined()
    expect(await suite.status(wantedToo.id)).toMatchObject({ state: 'created' })
    expect(await suite.sh(wanted, 'echo still here')).toMatchObject({ stdout: 'still here\n' })
    expect(await suite.engine().recover([wanted.id, wantedToo.id, ...others])).toMatchObject({ removed: 0 })
  })
}
