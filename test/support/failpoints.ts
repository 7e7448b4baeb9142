// Faults at one place: of an engine in this process, which meets what is wished for once; and of a running Berth that was started with BERTH_FAILPOINTS=on (src/lib/failpoints.ts): a
// file of the place's name in the role's own directory, gone once it was met.

import { chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getAccount } from '../../src/lib/system-users.ts'
import { createFailpoints, type Failpoints, type Fault } from '../../src/lib/failpoints.ts'
import type { Berth } from './berth.ts'

export type OneFault = {
  failpoints: Failpoints
  wish(place: string, fault: Fault): void
  /** What nobody has met yet. */
  wished(): { place: string; fault: Fault } | null
}

export function createOneFault(): OneFault {
  let wish: { place: string; fault: Fault } | null = null
  const take = (place: string) => {
    if (wish?.place !== place) return null
    const { fault } = wish
    wish = null
    return fault
  }
  return {
    failpoints: createFailpoints(take, async () => await new Promise<never>(() => {})),
    wish: (place, fault) => void (wish = { place, fault }),
    wished: () => wish,
  }
}

const directoryOf = (berth: Berth, role: 'engine' | 'server') =>
  join(berth.dataDir, 'roles', role, 'failpoints')

export async function arm(
  berth: Berth,
  role: 'engine' | 'server',
  place: string,
  fault: Fault,
): Promise<void> {
  const directory = directoryOf(berth, role)
  await mkdir(directory, { recursive: true })
  const path = join(directory, place)
  await writeFile(path, fault)
  if (role === 'engine') return
  const { uid, gid } = await getAccount('berth')
  for (const each of [directory, path]) await chown(each, uid, gid)
}

/** Places whose fault nobody has met yet. */
export async function stillArmed(berth: Berth): Promise<string[]> {
  const lists = await Promise.all(
    (['engine', 'server'] as const).map((role) => readdir(directoryOf(berth, role)).catch(() => [])),
  )
  return lists.flat()
}

/** So that a test that failed does not fault the next. */
export async function disarm(berth: Berth): Promise<void> {
  for (const role of ['engine', 'server'] as const) {
    const directory = directoryOf(berth, role)
    for (const place of await readdir(directory).catch(() => []))
      await rm(join(directory, place), { force: true })
  }
}
