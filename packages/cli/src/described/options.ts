// Options, as the descriptions of commands write them.

import type { Option } from '../args.ts'

export const text = (value: string, about: string, more: Partial<Option> = {}): Option => ({
  type: 'string',
  value,
  about,
  ...more,
})
export const flag = (about: string, more: Partial<Option> = {}): Option => ({
  type: 'boolean',
  about,
  ...more,
})

export const environment = text('NAME=VALUE', 'Set an environment variable; may be repeated', {
  short: 'e',
  multiple: true,
})
