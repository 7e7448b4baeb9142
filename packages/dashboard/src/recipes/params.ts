// The parameters of a recipe as fields of a form, and the values that are made of the fields.

import type { Contract } from '@berth/sdk'
import {
  curlCreate,
  pythonProgram,
  shellLines,
  shellQuote,
  toolCall,
  typescriptProgram,
} from '../ui/code-snippets.ts'

type Parameter = Contract.RecipeParameter

export type Pair = {
  name: string
  /** Of a secret of the team: its name. */
  value: string
  is: 'plain' | 'secret' | 'team'
}
/** What is in a field: text, or the rows of a record. */
export type FieldValue = string | Pair[]
export type Values = Record<string, FieldValue>

/** The name of a parameter in words: `volumeGb` is `Volume (GB)`. */
export function labelOf(name: string): string {
  const words = name
    .replace(/Gb$/, ' (GB)')
    .replace(/[A-Z]+(?![A-Z)])/g, (letters) => ` ${letters.toLowerCase()}`)
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

/** How a record is edited: as files, as an environment, or, where this page does not know its form, as JSON. */
export function recordKind({ format }: Pick<Parameter, 'format'>): 'files' | 'env' | 'json' {
  if (format?.startsWith('an object: a path')) return 'files'
  return format?.startsWith('an object: a name') ? 'env' : 'json'
}

export function startOf(parameter: Parameter): FieldValue {
  const value: unknown = parameter.defaultValue === null ? undefined : JSON.parse(parameter.defaultValue)
  if (parameter.type === 'secret') {
    const { teamSecret = '' } = (value ?? {}) as { teamSecret?: string }
    return [{ name: '', value: teamSecret, is: 'team' }]
  }
  if (parameter.type !== 'record')
    return typeof value === 'string'
      ? value
      : value === undefined || value === null
        ? ''
        : JSON.stringify(value)
  if (recordKind(parameter) === 'json') return value === undefined ? '' : JSON.stringify(value, null, 2)
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return entries.map(([name, text]) => ({
    name,
    value: typeof text === 'string' ? text : JSON.stringify(text),
    is: 'plain',
  }))
}

export const newPair: Pair = { name: '', value: '', is: 'plain' }

/** Returns the value for the API; undefined where the default is meant. Throws for JSON that is none. */
export function valueOf(parameter: Parameter, field: FieldValue): unknown {
  if (typeof field !== 'string')
    return parameter.type === 'secret' ? secretOf(field[0]) : recordOf(parameter, field)
  const text = field.trim()
  if (text === '') return undefined
  if (parameter.type === 'integer') return /^-?\d+$/.test(text) ? Number(text) : text
  if (parameter.type === 'record') return JSON.parse(text)
  return field
}

function secretOf({ value, is }: Pair = newPair): unknown {
  if (is === 'team') return value === '' ? undefined : { teamSecret: value }
  return { value: value.trim() }
}

function recordOf(parameter: Parameter, pairs: readonly Pair[]): unknown {
  const named = pairs.filter(({ name }) => name.trim() !== '')
  if (named.length === 0) return undefined
  return Object.fromEntries(
    named.map((pair) => [pair.name.trim(), recordKind(parameter) === 'env' ? envValueOf(pair) : pair.value]),
  )
}

/** The value of a variable, as the API takes it. */
export function envValueOf({ name, value, is }: Pair): NonNullable<Contract.UnitSpec['env']>[string] {
  if (is === 'team') return { teamSecret: value }
  return is === 'plain' ? value : { secret: name.trim(), ...(value === '' ? {} : { value }) }
}

/** What is wrong with the rows of an environment. */
export function envFault(pairs: readonly Pair[]): string | undefined {
  return pairs.some(({ name, value, is }) => name.trim() !== '' && is === 'team' && value === '')
    ? 'Choose a secret of the team.'
    : undefined
}

function secretFault({ type }: Parameter, [pair]: readonly Pair[]): string | undefined {
  return type === 'secret' && pair?.is === 'secret' && pair.value.trim() === ''
    ? 'Paste the value.'
    : undefined
}

/** The same call for a page that others may see. */
export function withoutValues(parameters: readonly Parameter[], params: Record<string, unknown>) {
  const isSecret = (name: string) => parameters.some((each) => each.name === name && each.type === 'secret')
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      const isOwn = isSecret(name) && typeof value === 'object' && value !== null && 'value' in value
      return [name, isOwn ? { value: '…' } : value]
    }),
  )
}

export type Params = { params: Record<string, unknown>; faults: Record<string, string> }

/** Only what differs from the defaults, so that the call says what was chosen. */
export function paramsOf(parameters: readonly Parameter[], values: Values): Params {
  const params: Record<string, unknown> = {}
  const faults: Record<string, string> = {}
  for (const parameter of parameters) {
    const { name, required, defaultValue, type } = parameter
    try {
      const field = values[name] ?? ''
      const fault = typeof field === 'string' ? undefined : (secretFault(parameter, field) ?? envFault(field))
      if (fault !== undefined) faults[name] = fault
      const value = valueOf(parameter, field)
      if (value === undefined) {
        if (required) faults[name] = 'Required.'
      } else if (type === 'integer' && typeof value !== 'number') faults[name] = 'A whole number.'
      else if (JSON.stringify(value) !== compact(defaultValue)) params[name] = value
    } catch {
      faults[name] = 'This is not JSON.'
    }
  }
  return { params, faults }
}

const compact = (json: string | null) => (json === null ? null : JSON.stringify(JSON.parse(json)))

export const languages = ['curl', 'CLI', 'TypeScript', 'Python', 'MCP'] as const
export type Language = (typeof languages)[number]

/** The create of a recipe in each language. Values need no quoting but by JSON and single quotes. */
export function codeOf(language: Language, url: string, body: Contract.CreateFromRecipe): string {
  const { recipe, ...rest } = body
  const options = Object.keys(rest).length === 0 ? '' : `, ${JSON.stringify(rest, null, 2)}`
  switch (language) {
    case 'curl':
      return curlCreate(url, body)
    case 'Python':
      return pythonProgram('made', 'recipes.run', recipe, rest)
    case 'MCP':
      return toolCall('create_from_recipe', { recipe, ...rest })
    case 'CLI':
      return shellLines([`berth recipe run ${shellQuote(recipe)}`, ...flagsOf(rest)])
    case 'TypeScript':
      return typescriptProgram(
        `const { units, outputs } = await berth.recipes.run(${JSON.stringify(recipe)}${options})`,
      )
  }
}

function flagsOf({
  params = {},
  name,
  stack,
  expose,
  sleep,
}: Omit<Contract.CreateFromRecipe, 'recipe'>): string[] {
  const sets = Object.entries(params).map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `--set ${shellQuote(`${key}=${text}`)}`
  })
  const given = Object.entries({ name, stack, sleep }).flatMap(([flag, value]) =>
    value === undefined ? [] : [`--${flag} ${shellQuote(value)}`],
  )
  return [...sets, ...given, ...(expose === undefined ? [] : [`--expose ${expose}`])]
}
