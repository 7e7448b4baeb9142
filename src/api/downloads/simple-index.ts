// The index of Python packages below /packages/simple (PEP 503, and PEP 691 as JSON): one distribution of ours. Every
// other name is PyPI's, so that with this one index pip finds what ours needs, and nobody on PyPI can take our name.

import { escapeHtml } from '../web/html.ts'
import type { Packages } from './packages.ts'

export const DISTRIBUTION = 'berth-sdk'

export type IndexAnswer =
  | { kind: 'page'; contentType: string; body: string }
  | { kind: 'elsewhere'; location: string }
  | { kind: 'missing' }

const JSON_TYPE = 'application/vnd.pypi.simple.v1+json'

/** `path`: behind /packages/simple/. `accept`: what the client says it reads. */
export function answerIndex(packages: Packages, path: string, accept: string): IndexAnswer {
  const wantsJson = accept.includes(JSON_TYPE)
  const page = (name: string, json: object, links: string[]): IndexAnswer =>
    wantsJson
      ? {
          kind: 'page',
          contentType: JSON_TYPE,
          body: JSON.stringify({ meta: { 'api-version': '1.0' }, ...json }),
        }
      : {
          kind: 'page',
          contentType: 'text/html; charset=utf-8',
          body: `<!doctype html>\n<html lang="en"><head><meta name="pypi:repository-version" content="1.0"><title>${name}</title></head><body>\n${links.join('\n')}\n</body></html>\n`,
        }
  if (path === '')
    return page('Packages', { projects: [{ name: DISTRIBUTION }] }, [
      `<a href="${DISTRIBUTION}/">${DISTRIBUTION}</a>`,
    ])
  const [, asked] = /^([a-z\d](?:[\w.-]{0,98}[a-z\d])?)\/?$/i.exec(path) ?? []
  if (asked === undefined) return { kind: 'missing' }
  const name = asked.replaceAll(/[-_.]+/g, '-').toLowerCase()
  if (name !== DISTRIBUTION) return { kind: 'elsewhere', location: `https://pypi.org/simple/${name}/` }
  if (path !== `${name}/`) return { kind: 'elsewhere', location: `/packages/simple/${name}/` }
  const { wheel } = packages
  const url = `../../${wheel.name}`
  const file = {
    filename: wheel.name,
    url,
    hashes: { sha256: wheel.sha256 },
    size: wheel.bytes,
    'requires-python': '>=3.10',
  }
  return page(name, { name, files: [file] }, [
    `<a href="${url}#sha256=${wheel.sha256}" data-requires-python="${escapeHtml('>=3.10')}">${wheel.name}</a>`,
  ])
}
