// Rules of egress in words, and as the text of the fields that a person edits.

export const modes = ['open', 'listed', 'none'] as const
export const scopes = ['team', 'stack', 'none'] as const
export type Egress = {
  mode: (typeof modes)[number]
  allow: string[]
  siblings: (typeof scopes)[number]
}
/** `allow`: one entry a line. */
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
  return { mode, allow: mode === 'listed' ? allow.split(/\s+/).filter(Boolean) : [], siblings }
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
