// A create that finds a machine made ahead beside one that does not: the same calls, in a Berth that makes some and in one
// that makes none.

import { setTimeout as delay } from 'node:timers/promises'
import { type Actions, type Figures, timed } from './figures.ts'

/** The engine makes one once nothing else is to do. */
const READY_WITHIN_MS = 3000

export async function measureSpaced(rounds: number, { create, exec, destroy }: Actions): Promise<Figures> {
  await destroy(await create())
  const figures = {
    'create to running': [] as number[],
    'create to first command answered': [] as number[],
    exec: [] as number[],
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
  return figures
}
