import { readFileSync } from 'node:fs'
import { z } from 'zod'

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

/** The version of this Berth. */
export const VERSION = z.object({ version: z.string() }).parse(JSON.parse(manifest)).version

/**
 * What one part of a Berth asks of another, over the machines, stays understood one minor version later and earlier: so a
 * rolling upgrade goes by one at a time.
 *
 * @param other Of another machine's Berth.
 * @returns Why this one does not work with it, as the end of a sentence about that machine; null if it does.
 */
export function refuseVersion(other: string, own = VERSION): string | null {
  const [theirs, ours] = [parse(other), parse(own)]
  if (theirs && ours && theirs.major === ours.major && Math.abs(theirs.minor - ours.minor) <= 1) return null
  return `it runs Berth ${other.slice(0, 32)} and the server ${own}, which work together only one minor version apart; install the same there`
}

function parse(version: string): { major: number; minor: number } | null {
  const [, major, minor] = /^(\d{1,6})\.(\d{1,6})\.\d/.exec(version) ?? []
  return major === undefined ? null : { major: Number(major), minor: Number(minor) }
}
