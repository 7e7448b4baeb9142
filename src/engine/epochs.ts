// The newest server epoch that the engine has seen. Each call carries the epoch of its server, and a call of an
// earlier server is refused, also after a restart: its plans are outdated (reliability F16). A new epoch is stored
// before its first call begins.

import { readIfThere } from '../lib/read-if-there.ts'
import { writeDurably } from '../lib/write-durably.ts'
import { EngineError } from './errors.ts'

export type Epochs = {
  newest(): number
  /** Throws `stale_caller` for an epoch before the newest. */
  admit(epoch: number): Promise<void>
}

export async function openEpochs(path: string): Promise<Epochs> {
  let kept = Number.parseInt((await readIfThere(path)) ?? '', 10) || 0
  let newest = kept
  let keeping: Promise<void> | null = null

  async function keep(epoch: number): Promise<void> {
    await writeDurably(path, `${epoch}\n`, 0o600)
    kept = epoch
  }

  return {
    newest: () => newest,
    admit: async (epoch) => {
      newest = Math.max(newest, epoch)
      while (kept < newest) {
        keeping ??= keep(newest).finally(() => {
          keeping = null
        })
        await keeping
      }
      if (epoch < newest) throw new EngineError('stale_caller', 'Another server has taken over.')
    },
  }
}
