import { expect, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'

export function recoverClaims(suite: Suite): void {
  test('recover keeps the wanted machines and removes all others', async () => {
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

  test('a machine put aside does not run, and is restored with its disk when it is wanted', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'echo kept > /root/kept')
    const before = await suite.status(ref.id)
    const others = (await suite.engine().list()).map(({ id }) => id).filter((id) => id !== ref.id)
    await suite.engine().putAside(ref.id)
    await suite.engine().putAside('unit_not_here')
    expect(await suite.status(ref.id)).toBeUndefined()
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('unknown_machine')
    await suite.engine().recover(others)
    expect(await suite.status(ref.id)).toBeUndefined()

    await suite.engine().recover([ref.id, ...others])
    expect(await suite.status(ref.id)).toMatchObject({ state: 'lost', address: before?.address })
    const again = await suite.start({ id: ref.id, generation: 2 })
    expect((await suite.sh(again, 'cat /root/kept')).stdout).toBe('kept\n')
    await suite.engine().putAside(ref.id)
    await suite.engine().destroy(ref.id)
    await suite.engine().recover([ref.id, ...others])
    expect(await suite.status(ref.id)).toBeUndefined()
  })
}
