// `berth secrets`: those of the team, by name. A value is read from standard input, since every user of the machine
// can see arguments, and no answer shows it again.

import { UsageError } from '../args.ts'
import type { Contract } from '@berth/sdk'
import type { Context } from '../context.ts'
import { Failure } from '../failure.ts'
import { readInput } from '../input.ts'
import { note, print, printJson, printTable, relative } from '../output.ts'

export async function ls({ berth, isJson, signal }: Context): Promise<void> {
  const secrets = await berth().secrets.list({ signal })
  if (isJson) return await printJson(secrets)
  await printTable(
    ['NAME', 'HOSTS', 'UNITS', 'CHANGED'],
    secrets.map(({ name, hosts, units, updatedAt }) => [
      name,
      hosts.join(', '),
      String(units),
      relative(updatedAt),
    ]),
  )
}

export async function set({ args, berth, isJson, signal }: Context): Promise<void> {
  const [name = ''] = args.args
  const [hosts, placeholder] = [args.list('host'), args.text('placeholder')]
  if (hosts.length === 0) throw new UsageError('--host says where the value goes: --host api.openai.com')
  const value = await readValue()
  const [methods, paths] = [args.list('method'), args.list('path')]
  const asked = {
    value,
    hosts,
    ...(methods.length > 0 && { methods: methods as Contract.SecretPut['methods'] & {} }),
    ...(paths.length > 0 && { paths }),
    ...(placeholder === undefined ? {} : { placeholder }),
  }
  const secret = await berth().secrets.put(name, asked, { signal })
  if (isJson) await printJson(secret)
  else await print(secret.name)
}

export async function rm({ args, berth, isJson, signal }: Context): Promise<void> {
  const [name = ''] = args.args
  const unbound = await berth().secrets.delete(name, { signal })
  if (isJson) return await printJson({ unbound })
  for (const unit of unbound) note(`${unit.name} runs on without it`)
  await print(name)
}

/** Longer than any value may be, which the service refuses. */
const MOST = 300_000

/** Without the line break that `echo` and editors add. */
async function readValue(): Promise<string> {
  if (process.stdin.isTTY) note('Paste the value, then Enter and Ctrl-D:')
  const value = (await readInput(MOST)).toString('utf8').replace(/\r?\n$/, '')
  if (value === '')
    throw new Failure('Standard input has no value.', { hint: 'berth secrets set NAME --host HOST < FILE' })
  return value
}
