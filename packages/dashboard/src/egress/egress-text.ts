// Rules of egress in words, and as the text of the fields that a person edits.

export const modes = ['open', 'listed', 'none'] as const
export const scopes = ['team', 'stack', 'none'] as const
export type Egress = {
  mode: (typeof modes)[number]
  allow: string[]
  deny?: string[] | undefined
  siblings: (typeof scopes)[number]
}
/** `allow` and `deny`: one entry a line. A line that is none is refused as one entry, and not as each of its words. */
export type EgressTexts = { mode: Egress['mode']; allow: string; deny: string; siblings: Egress['siblings'] }

export const modeTexts = {
  open: 'every public host',
  listed: 'the hosts listed here',
  none: 'no public host',
} as const satisfies Record<Egress['mode'], string>

export const scopeTexts = {
  team: 'every unit of the team',
  stack: 'the units of its stack',
  none: 'no other unit',
} as const satisfies Record<Egress['siblings'], string>

export function egressTextsOf({ mode, allow, deny = [], siblings }: Egress): EgressTexts {
  return { mode, allow: allow.join('\n'), deny: deny.join('\n'), siblings }
}

export function egressOf({ mode, allow, deny, siblings }: EgressTexts): Egress {
  const denied = mode === 'none' ? [] : linesOf(deny)
  const rules = { mode, allow: mode === 'listed' ? linesOf(allow) : [], siblings }
  return denied.length > 0 ? { ...rules, deny: denied } : rules
}

/** The lines of a field that takes one entry a line. */
export const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** What the service said of entries of a list, each with the line that it is about. */
export function entryFault(
  refused: readonly { path: string; message: string }[],
  list: 'allow' | 'deny',
  { [list]: entries = [] }: Egress,
): string | undefined {
  const said = refused
    .filter(({ path }) => path === list || path.startsWith(`${list}.`))
    .map(({ path, message }) => {
      const entry = entries[Number(path.slice(`${list}.`.length))]
      return entry === undefined ? message : `“${entry}” ${message}.`
    })
  return said.length === 0 ? undefined : said.join(' ')
}

export function isOpen({ mode, deny = [], siblings }: Egress): boolean {
  return mode === 'open' && deny.length === 0 && siblings === 'team'
}

/** `npm.example, *.example.com and 3 more, and the units of its stack`. */
export function egressText({ mode, allow, deny = [], siblings }: Egress): string {
  const names = firstOf(allow)
  const hosts = mode !== 'listed' ? modeTexts[mode] : names === '' ? modeTexts.none : names
  const but = deny.length > 0 ? `, but not ${firstOf(deny)}` : ''
  return `${hosts}${but}, and ${scopeTexts[siblings]}`
}

function firstOf(entries: readonly string[]): string {
  const more = entries.length - 3
  return `${entries.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
