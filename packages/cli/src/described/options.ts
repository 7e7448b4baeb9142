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

export const intoStack = text('NAME', 'Put it into this stack, which is created if needed')
export const sleepAfter = text('WINDOW', 'Sleep after this time without use: 30m, 2h, never')
export const since = text('TIME', 'Since a time, such as 2026-05-04T09:00:00Z')
