// A create that finds a machine made ahead beside one that does not: the same calls, in a Berth that makes some and in one
// that makes none.

import { setTimeout as delay } from 'node:timers/promises'
import { type Actions, AT_ONCE, type Figures, timed } from './figures.ts'

/** The engine makes one once nothing else is to do. */
const READY_WITHIN_MS = 3000
/** The same for as many as come at once, which it makes one after the other. */
const ALL_READY_WITHIN_MS = 8000
/** The engine has as many ready as came at once twice. */
const BURSTS_TO_LEARN = 2
const BURSTS = 4

export async function measureSpaced(rounds: number, { create, exec, destroy }: Actions): Promise<Figures> {
  await destroy(await create())
  const figures = {
    'create to running': [] as number[],
    'create to first command answered': [] as number[],
    exec: [] as number[],
    'ten creates at once, for the third time or later': [] as number[],
  }
  for (let round = 0; round < rounds; round += 1) {
    await delay(READY_WITHIN_MS)
    const id = await timed(figures['create to first command answered'], async () => {
      const made = await timed(figures['create to running'], create)
      await exec(made)
      return made
    })
    await timed(figures.exec, () => exec(id))
    await destroy(id)
  }
  for (let burst = 0; burst < BURSTS_TO_LEARN + BURSTS; burst += 1) {
    const samples = burst < BURSTS_TO_LEARN ? [] : figures['ten creates at once, for the third time or later']
    const ids = await timed(samples, () => Promise.all(Array.from({ length: AT_ONCE }, create)))
    await Promise.all(ids.map(destroy))
    await delay(ALL_READY_WITHIN_MS)
  }
  return figures
}
