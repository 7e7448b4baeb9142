// Full-text search of the documentation. It runs on the server, so that the browser needs no script and loads no
// index: the whole text is a few hundred kilobytes.

import { readersOfPage } from './contents.ts'

export type Searchable = { path: string; title: string; heading: string; anchor: string; text: string }

export type Found = { path: string; anchor: string; title: string; heading: string; excerpt: string }

export type Index = { find(query: string): Found[] }

const MAX_WORDS = 8
const MAX_FOUND = 20
const EXCERPT = 180

export const MAX_QUERY_LENGTH = 100

export function createIndex(passages: readonly Searchable[]): Index {
  const entries = passages.map((passage) => ({
    passage,
    title: passage.title.toLowerCase(),
    heading: passage.heading.toLowerCase(),
    text: passage.text.toLowerCase(),
  }))
  return {
    find: (query) => {
      const words = wordsOf(query)
      if (words.length === 0) return []
      return entries
        .map((entry) => ({ entry, score: scoreOf(entry, words) }))
        .filter(({ score }) => score > 0)
        .sort((one, other) => other.score - one.score)
        .slice(0, MAX_FOUND)
        .map(({ entry: { passage, text } }) => ({
          path: passage.path,
          anchor: passage.anchor,
          title: passage.title,
          heading: passage.heading,
          excerpt: excerptOf(passage.text, text, words),
        }))
    },
  }
}

function wordsOf(query: string): string[] {
  const words = query.slice(0, MAX_QUERY_LENGTH).toLowerCase().split(/\s+/)
  return [...new Set(words.filter((word) => word !== ''))].slice(0, MAX_WORDS)
}

/** Every word must occur. A word in a title or a heading counts more, and more so where it is most of it. */
function scoreOf(
  { title, heading, text, passage }: { title: string; heading: string; text: string; passage: Searchable },
  words: readonly string[],
): number {
  let score = 0
  for (const word of words) {
    const inTitle = title.includes(word) ? (10 * word.length) / title.length + 2 : 0
    const inHeading = heading.includes(word) ? (20 * word.length) / heading.length + 4 : 0
    const inText = text.includes(word) ? 1 : 0
    if (inTitle + inHeading + inText === 0) return 0
    score += inTitle + inHeading + inText
  }
  return score * weightOf(passage.path)
}

/** How to do something is asked more often than how Berth is run, and that more often than how it is made. */
function weightOf(path: string): number {
  if (/^(?:guides\/|quick-start|install|troubleshooting|certificates|upgrade)/.test(path)) return 2
  return { users: 1, operators: 0.6, contributors: 0.2 }[readersOfPage(path)]
}

function excerptOf(text: string, lower: string, words: readonly string[]): string {
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0)
  const first = places.length === 0 ? 0 : Math.min(...places)
  const from = first < 60 ? 0 : text.indexOf(' ', first - 60) + 1
  const piece = text.slice(from, from + EXCERPT)
  return `${from > 0 ? '… ' : ''}${piece}${from + EXCERPT < text.length ? ' …' : ''}`
}
