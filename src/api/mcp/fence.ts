// Puts marks around text that programs or strangers wrote, so that it cannot pass for this service's own words. The
// mark is random each time, so the text cannot contain it and close the fence.

import { randomBytes } from 'node:crypto'
import { clean } from './clean.ts'
import type { Cut } from './cut.ts'

export function newMark(): string {
  return randomBytes(4).toString('hex')
}

/** `hint` says how to get the part that was left out. */
export function fence(name: string, mark: string, cut: Cut, hint: string): string {
  const head = clean(cut.head)
  const tail = clean(cut.tail)
  const removed = head.removed + tail.removed
  const lines = [`<${name} ${mark}>`, withoutLastBreak(head.text)]
  if (cut.omitted > 0)
    lines.push(`[${count(cut.omitted)} characters left out: ${hint}]`, withoutLastBreak(tail.text))
  if (removed > 0) lines.push(`[${count(removed)} control characters left out]`)
  lines.push(`</${name} ${mark}>`)
  return lines.join('\n')
}

/** Formats a number for people: 48,210. */
export function count(number: number): string {
  return number.toLocaleString('en-US')
}

function withoutLastBreak(text: string): string {
  return text.replace(/\n$/, '')
}
