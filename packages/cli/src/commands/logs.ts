// `berth logs`: prints each line to the stream on which the unit printed it, or what one of its background processes printed.

import type { Unit } from '@berth/sdk'
import { timeSince, UsageError, wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { note, paint, printJson, write } from '../output.ts'

/** As many as one answer of the service has. */
const MAX_LINES = 500
const ofLinesOnly = ['lines', 'tail', 'since'] as const

export async function logs(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const id = args.text('process')
  if (id !== undefined) refuseLineOptions(context)
  const unit = await unitOf(context, args.args[0] ?? '')
  if (id !== undefined) return await logsOfProcess(context, unit, id)
  const asked = args.text('lines') ?? args.text('tail') ?? '100'
  const limit = asked === 'all' ? MAX_LINES : wholeNumber(asked, 'number of lines')
  const since = timeSince(args.text('since'))
  const lines = unit.logs({ follow: args.flag('follow'), limit, since, signal })
  let isEmpty = true
  for await (const line of lines) {
    isEmpty = false
    if (isJson) await write(`${JSON.stringify(line)}\n`)
    else {
      const time = args.flag('timestamps') ? `${paint(line.at, 'dim', process[line.stream])} ` : ''
      await write(`${time}${line.text}\n`, process[line.stream])
    }
  }
  const isWhole = since === undefined && !args.flag('follow')
  if (isEmpty && isWhole && !isJson) await pointToProcesses(context, unit)
  return 0
}

async function logsOfProcess({ args, isJson, signal }: Context, unit: Unit, id: string): Promise<number> {
  const background = await unit.processes.get(id, { signal })
  if (args.flag('follow')) {
    for await (const { stream, bytes, text } of background.follow({ signal })) {
      if (isJson) await write(`${JSON.stringify({ stream, text })}\n`)
      else await write(bytes, process[stream])
    }
    return 0
  }
  const printed = await background.text({ signal })
  if (isJson) await printJson({ process: background.info, ...printed })
  else for (const stream of ['stdout', 'stderr'] as const) await write(printed[stream], process[stream])
  return 0
}

function refuseLineOptions({ args }: Context): void {
  const given = ofLinesOnly.find((name) => args.text(name) !== undefined)
  const option = given ?? (args.flag('timestamps') ? 'timestamps' : null)
  if (option !== null)
    throw new UsageError(
      `--${option} is for the output of the unit, and --process for all that one process printed`,
    )
}

/** The output of what `berth run -d` starts is its own. */
async function pointToProcesses({ signal }: Context, unit: Unit): Promise<void> {
  const [last] = (await unit.processes.list({ signal })).toReversed()
  if (last)
    note(
      `The unit itself has printed nothing. Its last background process:\ntry: berth logs --process ${last.id} ${unit.name}`,
    )
}
