// `berth logs`: prints each line to the stream on which the unit printed it.

import { wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { paint, write } from '../output.ts'

export async function logs(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const unit = await unitOf(context, args.args[0] ?? '')
  const limit = wholeNumber(args.text('lines') ?? '100', 'number of lines')
  const since = args.text('since')
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
