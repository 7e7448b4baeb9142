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

export type HostedTexts = { image: string; size: Size; atOnce: string; egress: EgressTexts }

export const firstTexts: HostedTexts = {
  image: 'berth.local/agent:1',
  size: 'small',
  atOnce: '8',
  egress: { mode: 'none', allow: '', deny: '', siblings: 'none' },
}

export function textsOfHosted({ image, size, atOnce, egress }: Hosted): HostedTexts {
  const { mode = 'none', allow = [], deny = [], siblings = 'none' } = egress
  return { image, size, atOnce: String(atOnce), egress: egressTextsOf({ mode, allow, deny, siblings }) }
}

/** As a request has them. */
export function planOf({ image, size, atOnce, egress: texts }: HostedTexts) {
  const { allow, ...rest } = egressOf(texts)
  const egress = rest.mode === 'listed' ? { ...rest, allow } : rest
  return { image: image.trim(), size, atOnce: Number(atOnce), egress }
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
