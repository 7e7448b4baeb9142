// The end of a benchmark with several Berths: nothing of them is left.

import { setTimeout as delay } from 'node:timers/promises'
import { type Berth, type DataDir } from '../test/support/berth.ts'
import { cleanHost } from '../test/support/host-state.ts'
import type { Caller } from './caller.ts'

const TRIES = 60

export async function endBerths(callers: Caller[], ended: { berth: Berth; data: DataDir }[]): Promise<void> {
  for (const caller of callers) await caller.close()
  for (const { berth, data } of ended) {
    if (berth.wasStarted) {
      if (!berth.hasEnded) await berth.pressCtrlC()
      for (let tries = 0; tries < TRIES && !(await isClean(berth)); tries += 1) await delay(500)
    }
    await data.remove()
  }
}

async function isClean(berth: Berth): Promise<boolean> {
  return JSON.stringify(await berth.hostState()) === JSON.stringify(cleanHost)
}
