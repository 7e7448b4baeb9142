// `berth recipe ls`, `show` and `run`.

import { endpointMode, pairs } from '../args.ts'
import type { Context } from '../context.ts'
import { followCreation } from '../creation.ts'
import { print, printJson, printTable, waiting } from '../output.ts'

export async function ls(context: Context): Promise<void> {
  const recipes = await context.berth().recipes.list({ signal: context.signal })
  if (context.isJson) return await printJson(recipes)
  await printTable(
    ['NAME', 'WHAT', 'TAGS'],
    recipes.map(({ name, title, tags }) => [name, title, tags.join(', ')]),
  )
}

export async function show(context: Context): Promise<void> {
  const recipe = await context.berth().recipes.get(context.args.args[0] ?? '', { signal: context.signal })
  if (context.isJson) return await printJson(recipe)
  await print(`${recipe.title}: ${recipe.description}\n`)
  await printTable(
    ['PARAMETER', 'DEFAULT', 'WHAT'],
    recipe.params.map(({ name, required, defaultValue, description, options }) => [
      name,
      required ? 'required' : (defaultValue ?? '-'),
      [description, options && `(${options.join(', ')})`].filter(Boolean).join(' '),
    ]),
  )
  await print('')
  await printTable(
    ['OUTPUT', 'WHAT'],
    recipe.outputs.map(({ name, description }) => [name, description]),
  )
}

export async function run(context: Context): Promise<void> {
  const { args, signal, isJson } = context
  const recipe: string = args.args[0] ?? ''
  const expose = endpointMode(args.text('expose'))
  const params = Object.fromEntries(
    Object.entries(pairs(args.list('set'))).map(([name, value]) => [name, valueOf(value)]),
  )
  const asked = {
    params,
    name: args.text('name'),
    stack: args.text('stack'),
    sleep: args.text('sleep'),
    expose,
    signal,
  }
  const making = context.berth().recipes.run<string>(recipe, asked)
  const follow =
    context.isJson && !process.stderr.isTTY ? undefined : followCreation(context, asked.name ?? recipe)
  const made = await waiting(`creating ${recipe}`, making, follow)
  const { units, outputs, costLine } = made
  if (isJson) return await printJson({ units: units.map(({ info }) => info), outputs, costLine })
  for (const { name } of units) await print(name)
  for (const [name, value] of Object.entries(outputs)) await print(`${name}=${value}`)
}

/** JSON where it is some: numbers and objects. Everything else is text. */
export function valueOf(text: string): unknown {
  if (!/^(?:-?\d+|true|false|null|[[{"][^]*)$/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
