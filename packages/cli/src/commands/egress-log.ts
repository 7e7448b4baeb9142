// `berth egress log`: what a unit reached and was refused. `berth egress allow`: adds an entry to what it may reach.

import type { Contract } from '@berth/sdk'
import { wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { type Cell, note, print, printJson, printTable, write } from '../output.ts'

export async function log(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const unit = await unitOf(context, args.args[0] ?? '')
  const follow = args.flag('follow')
  const decision = args.flag('refused') ? ('refused' as const) : undefined
  const limit = wholeNumber(args.text('lines') ?? '100', 'number of lines')
  const lines = unit.egressLog({ follow, limit, since: args.text('since'), decision, signal })
  const wanted = new Set<string>()
  if (!isJson) await printTable(heads, [], widths)
  for await (const line of lines) {
    if (line.entry !== null) wanted.add(line.entry)
    if (isJson) await write(`${JSON.stringify(line)}\n`)
    else await printTable(null, [rowOf(line)], widths)
  }
  if (!isJson && wanted.size > 0)
    note(
      `To allow one: ${[...wanted]
        .slice(0, 5)
        .map((entry) => `berth egress allow ${unit.name} ${entry}`)
        .join('\n              ')}`,
    )
  return 0
}

export async function allow(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const [word = '', ...entries] = args.args
  const unit = await unitOf(context, word)
  for (const entry of entries) await unit.allowEgress(entry, { signal })
  const rules = await unit.egress({ signal })
  if (isJson) await printJson(rules)
  else if (rules.mode === 'open') await print(`${unit.name} may reach every public host.`)
  else await print(`${unit.name} may reach ${rules.allow.join(', ')}`)
  return 0
}

const heads = ['TIME', 'DECISION', 'HOST', 'COUNT', 'IN / OUT', 'WHY']
/** Lines that come one by one stand below each other. */
const widths = [17, 9, 36, 6, 19, 20]

function rowOf(line: Contract.EgressLogLine): Cell[] {
  const { at, host, port, decision, count, bytesIn, bytesOut, reason } = line
  const where = host ?? (count === 0 ? '(all)' : port === null ? '(others)' : '(no name)')
  return [
    at.slice(0, 16).replace('T', ' '),
    { text: decision, colour: decision === 'refused' ? 'red' : 'green' },
    port === null ? where : `${where}:${port}`,
    `${count}`,
    decision === 'refused' ? '-' : `${byteSize(bytesIn)} / ${byteSize(bytesOut)}`,
    reason,
  ]
}
