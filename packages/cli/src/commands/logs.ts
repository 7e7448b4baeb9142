// `berth logs`: prints each line to the stream on which the unit printed it.

import { timeSince, wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { paint, write } from '../output.ts'

/** As many as one answer of the service has. */
const MAX_LINES = 500

export async function logs(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const unit = await unitOf(context, args.args[0] ?? '')
  const asked = args.text('lines') ?? args.text('tail') ?? '100'
  const limit = asked === 'all' ? MAX_LINES : wholeNumber(asked, 'number of lines')
  const since = timeSince(args.text('since'))
  const lines = unit.logs({ follow: args.flag('follow'), limit, since, signal })
  for await (const line of lines) {
    if (isJson) await write(`${JSON.stringify(line)}\n`)
    else {
      const time = args.flag('timestamps') ? `${paint(line.at, 'dim', process[line.stream])} ` : ''
      await write(`${time}${line.text}\n`, process[line.stream])
    }
  }
  return 0
}
