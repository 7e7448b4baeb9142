// Parses the arguments of a command by its description (commands.ts), with node:util's parseArgs. If a command runs
// something in a unit, everything from its first word on belongs to that: `berth exec web --json -- ls -la`.

import { parseArgs } from 'node:util'
import { otherOption } from './docker-habits.ts'

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
  /** Options behind its arguments belong to what it runs, unless a `--` follows them: `berth db psql shop -c …`. */
  passesOptions?: boolean
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

/** A call of this program that it cannot make sense of. `hint`: what to type instead of asking for help. */
export class UsageError extends Error {
  readonly hint: string | null

  constructor(message: string, hint: string | null = null) {
    super(message)
    this.hint = hint
  }
}

export const globalOptions: Record<string, Option> = {
  json: { type: 'boolean', about: 'Print only the response of the service, as JSON' },
  profile: { type: 'string', value: 'NAME', about: 'Use this profile (default: BERTH_PROFILE)' },
  url: { type: 'string', value: 'URL', about: 'Address of the service (default: BERTH_URL)' },
  help: { type: 'boolean', short: 'h', about: 'Show this help' },
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
  const options = optionsOf(command)
  const [own, rest] = splitWords(command, words)
  const { values, positionals } = parsed(command.name, options, own)
  if (values.help !== true) checkCount(command, positionals)
  return {
    args: positionals,
    rest,
    flag: (name) => values[name] === true,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    list: (name) => [values[name] ?? []].flat().map(String),
  }
}

function parsed(command: string, options: Record<string, Option>, words: string[]) {
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short === undefined ? {} : { short }), ...(multiple ? { multiple } : {}) },
    ]),
  )
  try {
    return parseArgs({ args: words, options: config, allowPositionals: true })
  } catch (error) {
    const message = (error as Error).message.split('. ')[0] ?? ''
    const [, unknown = ''] = /^Unknown option '(--?[^']*)'/.exec(message) ?? []
    const habit = otherOption(command, unknown)
    const near = habit === null ? closest(unknown.replace(/^-+/, ''), Object.keys(options)) : null
    throw new UsageError(near === null ? message : `${message}. Did you mean --${near}?`, habit)
  }
}

/** The word that differs from what was typed by one or two letters, or begins with it; null: none does. */
export function closest(typed: string, words: readonly string[]): string | null {
  if (typed.length < 2) return null
  const most = typed.length < 3 ? 0 : typed.length < 5 ? 1 : 2
  const ranked = words
    .map((word) => ({ word, far: word.startsWith(typed) ? 0 : distance(typed, word) }))
    .sort((one, other) => one.far - other.far)
  const [first] = ranked
  return first !== undefined && first.far <= most ? first.word : null
}

/** How many letters are to be added, taken out, replaced, or exchanged with the next. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return 3
  let [before, last]: [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1]
      const changed = (last[j - 1] ?? 0) + (isSame ? 0 : 1)
      const swapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
          ? (before[j - 2] ?? 0) + 1
          : 3
      row.push(Math.min(changed, swapped, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    ;[before, last] = [last, row]
  }
  return last[other.length] ?? 3
}

const optionsOf = (command: Command): Record<string, Option> => ({ ...command.options, ...globalOptions })

/** Its own words, and those of the command behind them. */
export function splitWords(command: Command, words: string[]): [own: string[], rest: string[]] {
  if (command.restAfter === undefined) return [words, []]
  const options = optionsOf(command)
  let left = command.restAfter
  let at = 0
  while (at < words.length && words[at] !== '--') {
    const word = words[at] ?? ''
    if (left === 0 && (!isOption(word) || (command.passesOptions && !endsOptions(options, words.slice(at)))))
      return [words.slice(0, at), words.slice(at)]
    if (!isOption(word)) left -= 1
    at += takesNext(options, word) ? 2 : 1
  }
  return [words.slice(0, at), words.slice(at + 1)]
}

const isOption = (word: string) => word.startsWith('-') && word !== '-'

/** Whether the words begin with options of this program alone, and `--` behind them. */
function endsOptions(options: Record<string, Option>, words: string[]): boolean {
  let at = 0
  while (named(options, words[at] ?? '').length > 0) at += takesNext(options, words[at] ?? '') ? 2 : 1
  return words[at] === '--'
}

function takesNext(options: Record<string, Option>, word: string): boolean {
  return !word.includes('=') && named(options, word).at(-1)?.type === 'string'
}

/** The options that a word names, such as two in `-it`; none where one of them is unknown. */
function named(options: Record<string, Option>, word: string): Option[] {
  if (!isOption(word)) return []
  const [name = ''] = word.slice(word.startsWith('--') ? 2 : 1).split('=')
  const found = word.startsWith('--')
    ? [Object.hasOwn(options, name) ? options[name] : undefined]
    : name.split('').map((letter) => Object.values(options).find(({ short }) => short === letter))
  return found.every((option) => option !== undefined) ? found : []
}

function checkCount({ name, usage, args: [least, most] }: Command, positionals: string[]): void {
  if (positionals.length >= least && positionals.length <= most) return
  const what =
    positionals.length < least ? 'An argument is missing' : `"${positionals[most]}" is one argument too many`
  // What docker lists by this name is listed by another.
  const hint = name === 'ps' && positionals.length === 0 ? 'berth ls, or berth ps UNIT' : null
  throw new UsageError(`${what}: berth ${name} ${usage}`.trimEnd(), hint)
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** A time as it is, or `5m` for five minutes ago. Throws UsageError. */
export function timeSince(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (number !== undefined)
    return new Date(Date.now() - Number(number) * (SECONDS[unit] ?? 1) * 1000).toISOString()
  if (!/^\d{4}-\d\d-\d\dT/.test(text))
    throw new UsageError(
      `"${text}" is not a time: write 5m, 2h or 1d for that long ago, or 2026-05-04T09:00:00Z`,
    )
  return text
}

/** `90`, `90s`, `2m`, `1h` in ms. */
export function milliseconds(text: string): number {
  const [, number, unit = 's'] = /^(\d{1,6})([smh])?$/.exec(text) ?? []
  if (number === undefined) throw new UsageError(`"${text}" is not a time: write 90s, 2m or 1h`)
  return Number(number) * (SECONDS[unit] ?? 1) * 1000
}

export function wholeNumber(text: string, what: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`"${text}" is not a ${what}: write a number`)
  return Number(text)
}

/** `NAME=VALUE` each. */
export function pairs(words: string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=')
      if (at < 1) throw new UsageError(`"${word}" is not NAME=VALUE`)
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

/** Of `--expose`. */
export function endpointMode(text: string | undefined): 'public' | 'private' | undefined {
  if (text === undefined || text === 'public' || text === 'private') return text
  throw new UsageError('--expose is public or private')
}
