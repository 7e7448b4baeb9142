// Parses the arguments of a command by its description (commands.ts), with node:util's parseArgs. If a command runs
// something in a unit, everything after its last argument belongs to that: `berth exec web ls -la`.

import { parseArgs } from 'node:util'

export type Option = {
  type: 'string' | 'boolean'
  short?: string
  multiple?: boolean
  /** What its value is called in the help. */
  value?: string
  about: string
}

export type Command = {
  name: string
  about: string
  /** Behind the name, in the help: `UNIT [--] CMD…`. */
  usage: string
  options: Record<string, Option>
  /** How many arguments it takes at least and at most. */
  args: [number, number]
  /** After this many arguments, the rest is passed on as a command. */
  restAfter?: number
  /** Its own options may also stand behind them: `berth run IMAGE --rm -- CMD`. */
  optionsBehind?: boolean
  /** What is completed for its arguments. */
  completes?: 'units' | 'stacks' | 'recipes'
  /** Each is a line behind `berth`, with what it does. */
  examples: [line: string, does: string][]
}

export type Args = {
  args: string[]
  /** The command that is passed on. */
  rest: string[]
  flag: (name: string) => boolean
  text: (name: string) => string | undefined
  list: (name: string) => string[]
}

/** A call of this program that it cannot make sense of. */
export class UsageError extends Error {}

export const globalOptions: Record<string, Option> = {
  json: { type: 'boolean', about: 'Answers of the service, as JSON, and nothing else' },
  profile: { type: 'string', value: 'NAME', about: 'Of `berth profiles`; else BERTH_PROFILE' },
  url: { type: 'string', value: 'URL', about: 'Of the service; else BERTH_URL' },
  help: { type: 'boolean', short: 'h', about: 'This' },
}

/** Returns the word if it is one of these. Throws UsageError for another. */
export function oneOf<const Words extends readonly string[]>(
  given: string | undefined,
  words: Words,
  what: string,
): Words[number] | undefined {
  if (given === undefined || words.includes(given)) return given
  throw new UsageError(`The ${what} is one of ${words.join(', ')}; "${given}" is none of them`)
}

/** Throws UsageError. */
export function readArgs(command: Command, words: string[]): Args {
  const options = { ...command.options, ...globalOptions }
  const [own, rest] = split(command, options, words)
  const { values, positionals } = parsed(options, own)
  if (values.help !== true) checkCount(command, positionals)
  return {
    args: positionals,
    rest,
    flag: (name) => values[name] === true,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    list: (name) => [values[name] ?? []].flat().map(String),
  }
}

function parsed(options: Record<string, Option>, words: string[]) {
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short === undefined ? {} : { short }), ...(multiple ? { multiple } : {}) },
    ]),
  )
  try {
    return parseArgs({ args: words, options: config, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0])
  }
}

/** Its own words, and those of the command behind them. */
function split(command: Command, options: Record<string, Option>, words: string[]): [string[], string[]] {
  if (command.restAfter === undefined) return [words, []]
  let left = command.restAfter
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (word === '--') return [words.slice(0, at), words.slice(at + 1)]
    const isOption = word.startsWith('-') && word !== '-'
    if (left === 0 && !(isOption && command.optionsBehind)) return [words.slice(0, at), words.slice(at)]
    if (isOption) at += takesNext(options, word) ? 1 : 0
    else left -= 1
  }
  return [words, []]
}

function takesNext(options: Record<string, Option>, word: string): boolean {
  if (word.includes('=')) return false
  const option = word.startsWith('--')
    ? options[word.slice(2)]
    : Object.values(options).find(({ short }) => short === word.at(-1))
  return option?.type === 'string'
}

function checkCount({ name, usage, args: [least, most] }: Command, positionals: string[]): void {
  if (positionals.length >= least && positionals.length <= most) return
  const what = positionals.length < least ? 'Something is missing' : `"${positionals[most]}" is too much`
  throw new UsageError(`${what}: berth ${name} ${usage}`)
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600 }

/** `90`, `90s`, `2m`, `1h` in ms. */
export function milliseconds(text: string): number {
  const [, number, unit = 's'] = /^(\d{1,6})([smh])?$/.exec(text) ?? []
  if (number === undefined) throw new UsageError(`"${text}" is no time: write 90s, 2m or 1h`)
  return Number(number) * (SECONDS[unit] ?? 1) * 1000
}

export function wholeNumber(text: string, what: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`"${text}" is no ${what}: write a number`)
  return Number(text)
}

/** `NAME=VALUE` each. */
export function pairs(words: string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=')
      if (at < 1) throw new UsageError(`"${word}" is no NAME=VALUE`)
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

/** Of `--expose`. */
export function endpointMode(text: string | undefined): 'public' | 'private' | undefined {
  if (text === undefined || text === 'public' || text === 'private') return text
  throw new UsageError('--expose is public or private')
}
