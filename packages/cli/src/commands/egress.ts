// `berth egress`: shows, sets and checks what a unit may reach.

import type { Contract } from '@berth/sdk'
import { type Args, oneOf, UsageError, wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { print, printJson } from '../output.ts'

const modes = ['open', 'listed', 'none'] as const
const scopes = ['team', 'stack', 'none'] as const

export async function egress(context: Context): Promise<number> {
  const { args, isJson, signal } = context
  const asked = rulesOf(args)
  const unit = await unitOf(context, args.args[0] ?? '')
  const tried = args.text('check')
  if (tried !== undefined) {
    const { host, port } = hostOf(tried)
    const answer = await unit.checkEgress(host, port, { signal })
    if (isJson) await printJson(answer)
    else await print(`${answer.decision}: ${answer.reason}`)
    return answer.decision === 'allowed' ? 0 : 1
  }
  const rules = asked ? await unit.setEgress(asked, { signal }) : await unit.egress({ signal })
  if (isJson) await printJson(rules)
  else for (const line of linesOf(rules)) await print(line)
  return 0
}

/** Returns the rules that the options ask for; undefined without any. */
export function rulesOf(args: Args): Contract.EgressAsked | undefined {
  const allow = args.list('allow')
  const deny = args.list('deny')
  const mode = oneOf(args.text('mode') ?? args.text('egress'), modes, 'mode')
  const siblings = oneOf(args.text('siblings'), scopes, 'value of --siblings')
  if (mode === undefined && siblings === undefined && allow.length + deny.length === 0) return undefined
  return {
    ...(mode !== undefined && { mode }),
    ...((allow.length > 0 || mode === 'listed') && { allow }),
    ...(deny.length > 0 && { deny }),
    ...(siblings !== undefined && { siblings }),
  }
}

function hostOf(text: string): { host: string; port: number } {
  const [host = '', port = '443', ...more] = text.split(':')
  if (host === '' || more.length > 0) throw new UsageError('--check takes HOST or HOST:PORT')
  return { host, port: wholeNumber(port, 'port') }
}

function linesOf({ mode, allow, deny = [], siblings, version, appliedAt }: Contract.EgressInForce): string[] {
  const inForce = appliedAt === null ? 'not in force yet' : `in force since ${appliedAt}`
  return [
    `mode ${mode}`,
    ...allow.map((entry) => `allow ${entry}`),
    ...deny.map((range) => `deny ${range}`),
    `siblings ${siblings}`,
    `version ${version}, ${inForce}`,
  ]
}
