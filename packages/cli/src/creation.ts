// Follows how far a creation is, for the spinner beside it.

import { describeProgress } from '@berth/sdk'
import type { Context } from './context.ts'
import type { Follow } from './output.ts'

/** The newest unit of this name. What cannot be followed is not said: the creation itself says what is wrong. */
export function followCreation(context: Context, name: string): Follow {
  return async (say, signal) => {
    for await (const { event, data } of context.berth().events({ signal })) {
      if (event !== 'unit' || data.name !== name || data.progress === null) continue
      const last = data.progress.log.at(-1)
      say(`${describeProgress(data.progress)}${last === undefined ? '' : `: ${last}`}`)
    }
  }
}
