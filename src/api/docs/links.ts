// Converts links between Markdown files into links between pages. In the repository they are links between files, so
// that they work there too.

import { posix } from 'node:path'
import { addressOf, listed } from './contents.ts'

const byFile = new Map(listed.map(({ file, path }) => [file, path]))
const pathsOfProgram = new Map([
  ['openapi.json', '/v1/openapi.json'],
  ['README.md', '/docs'],
])

/** The path of a page that a file is, or null for a file that is no page. */
export function pathOfFile(file: string): string | null {
  const listedAs = byFile.get(file)
  if (listedAs !== undefined) return listedAs
  const [, path] = /^docs\/([\w/-]+)\.md$/.exec(file) ?? []
  return path ?? null
}

/**
 * The address that a link in a file leads to, or null where it leads to a file that is no page. Links to other sites
 * stay as they are.
 */
export function linkFrom(file: string, href: string): string | null {
  if (/^[a-z]+:|^#|^\//.test(href)) return href
  const [target = '', anchor] = href.split('#')
  const meant = posix.join(posix.dirname(file), target)
  const known = pathsOfProgram.get(meant)
  const path = known === undefined ? pathOfFile(meant) : null
  const address = known ?? (path === null ? null : addressOf(path))
  if (address === null) return null
  return anchor === undefined ? address : `${address}#${anchor}`
}
