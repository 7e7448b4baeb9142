// Environments of hosted agents in words, and as the text of the fields that a person edits.

import type { Contract } from '@berth/sdk'
import { type Egress, type EgressTexts, egressOf, egressText, egressTextsOf } from '../egress/egress-text.ts'
import { type Size, sizes } from './policy-text.ts'

export type Hosted = Contract.HostedEnvironment

export const vendorNames = { claude: 'Claude Managed Agents' } as const satisfies Record<
  Hosted['vendor'],
  string
>

export const stateTexts = {
  off: 'off',
  starting: 'starting',
  waiting: 'ready',
  full: 'full',
  failing: 'cannot reach the vendor',
  refused: 'refused',
} as const satisfies Record<Hosted['state'], string>

/** `copyOf`: the id of a unit; empty for a new unit of the image. */
export type HostedTexts = { copyOf: string; image: string; size: Size; atOnce: string; egress: EgressTexts }

export type HostedFieldProps = {
  texts: HostedTexts
  fault: string | undefined
  onChange: (texts: HostedTexts) => void
}

export const firstTexts: HostedTexts = {
  copyOf: '',
  image: 'berth.local/agent:1',
  size: 'small',
  atOnce: '8',
  egress: { mode: 'none', allow: '', deny: '', siblings: 'none' },
}

export function textsOfHosted({ copyOf, image, size, atOnce, egress }: Hosted): HostedTexts {
  const { mode = 'none', allow = [], deny = [], siblings = 'none' } = egress
  const rules = egressTextsOf({ mode, allow, deny, siblings })
  return { copyOf: copyOf ?? '', image, size, atOnce: String(atOnce), egress: rules }
}

/** Whether a unit can have been prepared: those of sessions are none. */
export function isSource({ state, metadata }: Contract.Unit): boolean {
  return ['running', 'sleeping', 'stopped'].includes(state) && metadata['berth.agents'] === undefined
}

/** Of the field that says what a unit begins as. */
export function sourceOptions(sources: readonly Contract.Unit[], chosen: string, isGone: boolean) {
  const isTwice = (name: string) => sources.filter((each) => each.name === name).length > 1
  const known = sources
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map(({ id, name }) => ({ value: id, label: `a copy of ${isTwice(name) ? `${name}, ${id}` : name}` }))
  const isKnown = chosen === '' || known.some(({ value }) => value === chosen)
  const other = { value: chosen, label: isGone ? 'a copy of a unit that is gone' : 'a copy of a unit' }
  return [{ value: '', label: 'a new unit' }, ...known, ...(isKnown ? [] : [other])]
}

/** As a request has them. */
export function planOf({ copyOf, image, size, atOnce, egress: texts }: HostedTexts) {
  const { allow, ...rest } = egressOf(texts)
  const egress = rest.mode === 'listed' ? { ...rest, allow } : rest
  return { copyOf: copyOf === '' ? null : copyOf, image: image.trim(), size, atOnce: Number(atOnce), egress }
}

/** Bounds all sessions together by what each begins with. */
export function boundOf(texts: HostedTexts, dailySpendCapCents: number) {
  const egress: Egress = egressOf(texts.egress)
  return {
    maxConcurrentUnits: Number(texts.atOnce),
    dailySpendCapCents,
    allowedSizes: sizes.slice(0, sizes.indexOf(texts.size) + 1),
    egress,
  }
}

/** What a field lacks; null if nothing. */
export function lackOf({ image, atOnce }: HostedTexts): string | null {
  if (image.trim() === '') return 'It needs an image.'
  return /^[1-9]\d{0,2}$/.test(atOnce.trim()) ? null : 'Sessions at once is a whole number, such as 8.'
}

/** `At most 8 sessions at once, each in a small unit of node:22 that reaches no public host, and no other unit.` */
export function plainSentence(hosted: Hosted): string {
  const { size, image, atOnce, copyOf } = hosted
  const reach = egressText(egressOf(textsOfHosted(hosted).egress))
  const sessions = atOnce === 1 ? 'One session at a time' : `At most ${atOnce} sessions at once`
  if (copyOf !== null) return `${sessions}, each in a copy of a unit that was prepared.`
  return `${sessions}, each in a ${size} unit of ${image} that reaches ${reach}.`
}
