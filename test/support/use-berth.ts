// The fixture of every test on the real product: a Berth of its own, and proof that nothing of it is left.

import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { logPathOf } from '../../src/lib/log.ts'
import { readIfThere } from '../../src/lib/read-if-there.ts'
import { Berth, type DataDir, eventually, makeDataDir, nameDataDir, type Settings } from './berth.ts'
import { destroyAll } from './berth-units.ts'
import { clearAfterwards } from './clear-afterwards.ts'
import { cleanHost } from './host-state.ts'

/**
 * A Berth for the tests of the file or the suite that this is called in. It is started before them. After them, and after
 * the hooks that the file registers below this call, its units are destroyed, Ctrl-C ends it with 0, nothing that carries
 * its name is on the host (processes, mounts, namespaces, links, groups, tables, loop devices), and its data directory is
 * removed. Tests may end it and start it again; where one leaves it ended, that was with 0 too, and without units.
 *
 * @param settings Its settings; a function where they are known only when tests run. With null the tests start it.
 * @param options `isEmpty`: for a first start as an operator has it, on a data directory with nothing in it.
 * @returns The Berth, which can be used from the first `beforeAll` below this call.
 */
export function useBerth(
  settings: Settings | (() => Settings) | null = {},
  options: { isEmpty?: boolean } = {},
): Berth {
  const path = nameDataDir()
  const berth = new Berth(path)
  let data: DataDir
  clearAfterwards(path)
  beforeAll(async () => {
    data = await makeDataDir(path, options)
    if (settings !== null) await berth.start(typeof settings === 'function' ? settings() : settings)
  })
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await showWarnings(path)
  })
  afterAll(async () => {
    if (berth.wasStarted) await takeOffHost(berth)
    await data.remove()
  })
  return berth
}

const WARN = 40
const MAX_LINES = 40

/** Why a test failed on another machine cannot be read there later: the data directory is gone by then. */
async function showWarnings(dataDir: string): Promise<void> {
  const log = (await readIfThere(logPathOf(dataDir))) ?? ''
  const warnings = log.split('\n').filter((line) => Number(/"level":(\d+)/.exec(line)?.[1]) >= WARN)
  process.stderr.write(
    ['Warnings of this Berth, the newest last:', ...warnings.slice(-MAX_LINES), ''].join('\n'),
  )
}

/** Ends it in order, with its units, and sees that nothing of it is left on the host. */
export async function takeOffHost(berth: Berth): Promise<void> {
  if (!berth.hasEnded) await destroyAll(berth)
  expect(await berth.pressCtrlC()).toBe(0)
  await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
}
