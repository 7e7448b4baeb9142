// `berth stack ls`, `fork` and `rm`.

import type { Stack } from '@berth/sdk'
import type { Context } from '../context.ts'
import { Failure } from '../failure.ts'
import { print, printJson, printTable, waiting } from '../output.ts'

export async function ls(context: Context): Promise<void> {
  const stacks = await context.berth().stacks.list({ signal: context.signal }).all()
  if (context.isJson) return await printJson(stacks.map(({ info }) => info))
  await printTable(
    ['NAME', 'UNITS'],
    stacks.map(({ info, name }) => [
      name,
      info.units.map((unit) => `${unit.name} (${unit.state})`).join(', ') || '-',
    ]),
  )
}

export async function fork(context: Context): Promise<void> {
  const stack = await stackOf(context)
  const copying = stack.fork({ into: context.args.text('into'), signal: context.signal })
  const copy = await waiting(`copying ${stack.name}`, copying)
  if (context.isJson) return await printJson({ ...copy, units: copy.units.map(({ info }) => info) })
  await print(copy.stack)
}

export async function rm(context: Context): Promise<void> {
  const stack = await stackOf(context)
  await waiting(`destroying ${stack.name}`, stack.destroy({ signal: context.signal }))
  await (context.isJson ? printJson(stack.info) : print(stack.name))
}

async function stackOf(context: Context): Promise<Stack> {
  const { stacks } = context.berth()
  const word = context.args.args[0] ?? ''
  const found = word.startsWith('stack_')
    ? await stacks.get(word, { signal: context.signal })
    : await stacks.find(word, { signal: context.signal })
  if (!found) throw new Failure(`There is no stack "${word}".`, { hint: 'berth stack ls', code: 'not_found' })
  return found
}
