// Highlights code: marks words by classes, which a strict content security policy allows; the colours are in
// docs.css.

import { createRequire } from 'node:module'
import { escapeHtml } from '../web/html.ts'

/**
 * What we use of highlight.js. Its own types bring those of a browser with them, and with these everything here would be
 * checked against a browser's `fetch`.
 */
type Highlighter = {
  registerLanguage(name: string, language: unknown): void
  getLanguage(name: string): unknown
  highlight(text: string, options: { language: string }): { value: string }
}

const require = createRequire(import.meta.url)
const highlighter = require('highlight.js/lib/core') as Highlighter
const languages = {
  bash: require('highlight.js/lib/languages/bash') as unknown,
  http: require('highlight.js/lib/languages/http') as unknown,
  ini: require('highlight.js/lib/languages/ini') as unknown,
  json: require('highlight.js/lib/languages/json') as unknown,
  python: require('highlight.js/lib/languages/python') as unknown,
  sql: require('highlight.js/lib/languages/sql') as unknown,
  typescript: require('highlight.js/lib/languages/typescript') as unknown,
  yaml: require('highlight.js/lib/languages/yaml') as unknown,
}
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language)

/** As HTML; text of a language that is not known has no marks. */
export function highlight(text: string, language: string): string {
  const isKnown = language !== '' && highlighter.getLanguage(language) !== undefined
  return isKnown ? highlighter.highlight(text, { language }).value : escapeHtml(text)
}
