// Rules of egress in words, and as the text of the fields that a person edits.

export const modes = ['open', 'listed', 'none'] as const
export const scopes = ['team', 'stack', 'none'] as const
export type Egress = {
  mode: (typeof modes)[number]
  allow: string[]
  siblings: (typeof scopes)[number]
}
/** `allow`: one entry a line. A line that is none is refused as one entry, and not as each of its words. */
export type EgressTexts = { mode: Egress['mode']; allow: string; siblings: Egress['siblings'] }

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

export function egressTextsOf({ mode, allow, siblings }: Egress): EgressTexts {
  return { mode, allow: allow.join('\n'), siblings }
}

export function egressOf({ mode, allow, siblings }: EgressTexts): Egress {
  return { mode, allow: mode === 'listed' ? linesOf(allow) : [], siblings }
}

/** The lines of a field that takes one entry a line. */
export const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** What the service said of entries of `allow`, each with the line that it is about. */
export function allowFault(
  refused: readonly { path: string; message: string }[],
  allow: readonly string[],
): string | undefined {
  const said = refused
    .filter(({ path }) => path === 'allow' || path.startsWith('allow.'))
    .map(({ path, message }) => {
      const entry = allow[Number(path.slice('allow.'.length))]
      return entry === undefined ? message : `“${entry}” ${message}.`
    })
  return said.length === 0 ? undefined : said.join(' ')
}

export function isOpen({ mode, siblings }: Egress): boolean {
  return mode === 'open' && siblings === 'team'
}

/** `npm.example, *.example.com and 3 more, and the units of its stack`. */
export function egressText({ mode, allow, siblings }: Egress): string {
  const more = allow.length - 3
  const names = `${allow.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const hosts = mode !== 'listed' ? modeTexts[mode] : names === '' ? modeTexts.none : names
  return `${hosts}, and ${scopeTexts[siblings]}`
}
