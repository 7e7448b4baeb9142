// What people read is short, and in their words: each sentence of the dashboard, the pages, the CLI, errors and the SDKs,
// and of the pages of the documentation that newcomers open first and users look things up in.

import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { contents } from '../../src/api/docs/contents.ts'
import { listSentences, type Sentence, sentencesOf } from '../../scripts/sentences.ts'

const MAX_WORDS = 20

/** Pages of operators that are read as those of users are. */
const ofOperators = ['docs/certificates.md', 'docs/upgrade.md']

const ofUsers = contents
  .filter(({ readers }) => readers === 'users')
  .flatMap(({ pages }) => pages.map(({ file }) => file))
  .filter((file) => existsSync(new URL(`../../${file}`, import.meta.url)))

const pages = ['README.md', ...ofOperators, ...ofUsers]

const all: Sentence[] = [...listSentences(), ...pages.flatMap(proseOf)]

const told = ({ place, text }: Sentence) => `${place}: ${text}`

it('no sentence that people see has more than 20 words', () => {
  expect(all.length).toBeGreaterThan(1500)
  expect(all.filter(({ text }) => text.split(' ').length > MAX_WORDS).map(told)).toEqual([])
})

it('no sentence of the dashboard, of a page or of the CLI names what Berth is made with', () => {
  const inside =
    /\b(?:React|zod|Kysely|Fastify|conmon|runsc|cgroup|overlayfs|Postgres|SQL|schema|handler|reconciler)\b/
  const places = /^(?:packages\/(?:dashboard|cli)|src\/api\/web)\//
  expect(all.filter(({ place, text }) => places.test(place) && inside.test(text)).map(told)).toEqual([])
})

/** Fewer are a label, which has its place in each form and table. */
const SENTENCE_WORDS = 5

/** What describes a field or a call of the API is read beside that one alone. */
const ofReference = /^src\/(?:contract\/(?!errors)|api\/routes\/)/

/** Of each only one is read: by who writes TypeScript, or Python. */
const twins = ['docs/sdk.md', 'docs/python.md']

it('no sentence that people see is written twice', () => {
  const places = new Map<string, string[]>()
  for (const { place, text } of all) {
    const words = text.toLowerCase().match(/\p{L}[\p{L}\d'’.-]*/gu) ?? []
    if (words.filter((word) => !/\d/.test(word)).length < SENTENCE_WORDS || ofReference.test(place)) continue
    const sentence = words.join(' ').replace(/\.$/, '')
    places.set(sentence, [...(places.get(sentence) ?? []), place])
  }
  const twice = [...places].filter(
    ([, where]) => where.length > 1 && where.toSorted().join() !== twins.toSorted().join(),
  )
  expect(twice.map(([sentence, where]) => `${sentence}: ${where.join(', ')}`)).toEqual([])
})

/** Of a page in Markdown: without code, tables, addresses, headings and the titles of pages that it lists. */
function proseOf(place: string): Sentence[] {
  const prose = readFileSync(new URL(`../../${place}`, import.meta.url), 'utf8')
    .replaceAll(/^```[^]*?^```$/gm, '\n')
    .replaceAll(/^\|.*$|<[^>]+>/gm, '\n')
    .replaceAll(/^#.*$|^(?:- )?(?:\[[^\]]*\]\([^)]*\)[ ·,.]*)+$/gm, '\n')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
  return prose
    .split(/\n\s*\n|\n(?=[-*#>]|\d+\. )/)
    .flatMap(sentencesOf)
    .map((text) => ({ place, text }))
}
