// Renders Markdown as HTML without scripts or inline styles. The Markdown is our own; HTML in it is still shown as
// text.

import { Marked, type Token, type Tokens } from 'marked'
import { escapeHtml } from '../web/html.ts'
import { highlight } from './highlight.ts'
import { slugOf } from './slug.ts'

/** How the language of a block is called to its reader. */
const names: Record<string, string> = {
  sh: 'Shell',
  ts: 'TypeScript',
  python: 'Python',
  json: 'JSON',
  toml: 'TOML',
  ini: 'INI',
  sql: 'SQL',
}

export type Heading = { depth: number; text: string; anchor: string }

/** The text below one heading, for the search. */
export type Passage = { heading: string; anchor: string; text: string }

export type Rendered = { title: string; html: string; headings: Heading[] }

/** `linkTo` answers the address of a link, or null where nothing is there to go to. */
export function renderMarkdown(source: string, linkTo: (href: string) => string | null): Rendered {
  const headings: Heading[] = []
  const headingOf = createHeadings()
  const marked = new Marked()
  marked.use({
    renderer: {
      heading(token) {
        const heading = headingOf(token)
        headings.push(heading)
        const inner = this.parser.parseInline(token.tokens)
        const link =
          token.depth === 1
            ? ''
            : ` <a class="anchor" href="#${heading.anchor}" aria-label="Link to ${escapeHtml(heading.text)}">#</a>`
        return `<h${token.depth} id="${heading.anchor}">${inner}${link}</h${token.depth}>\n`
      },
      code: ({ text, lang = '' }) => codeBlock(text, lang),
      link(token) {
        const inner = this.parser.parseInline(token.tokens)
        const address = linkTo(token.href)
        if (address === null) return inner
        const outside = /^https?:/.test(address) ? ' rel="noopener noreferrer"' : ''
        return `<a href="${escapeHtml(address)}"${outside}>${inner}</a>`
      },
      image: ({ text }) => escapeHtml(text),
      html: ({ text }) => escapeHtml(text),
      table(token) {
        const cells = (row: Tokens.TableCell[], tag: string) =>
          row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')
        const isNamed = token.header.some((cell) => cell.text !== '')
        const head = isNamed
          ? `<thead><tr>${cells(token.header, 'th').replaceAll('<th></th>', '<td></td>')}</tr></thead>`
          : ''
        const rows = token.rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n')
        return `<div class="table" tabindex="0"><table>${head}<tbody>${rows}</tbody></table></div>\n`
      },
    },
  })
  const html = marked.parse(source, { async: false })
  return { title: headings.find(({ depth }) => depth === 1)?.text ?? '', html, headings }
}

/** Tells headings apart that have the same text. */
function createHeadings(): (token: Tokens.Heading) => Heading {
  const anchors = new Map<string, number>()
  return (token) => {
    const text = plain(token)
    const base = slugOf(text)
    const seen = anchors.get(base) ?? 0
    anchors.set(base, seen + 1)
    return { depth: token.depth, text, anchor: seen === 0 ? base : `${base}-${seen}` }
  }
}

function codeBlock(text: string, info: string): string {
  const [language = ''] = info.split(' ')
  const inner = highlight(text, language)
  const label = names[language]
  const caption = label === undefined ? '' : `<span class="language">${label}</span>`
  return `<div class="code">${caption}<pre tabindex="0"><code>${inner}\n</code></pre></div>\n`
}

/** The text of a page, by its headings; without the work of writing it as HTML. */
export function passagesOf(source: string): Passage[] {
  const headingOf = createHeadings()
  const passages: Passage[] = []
  for (const token of new Marked().lexer(source)) {
    if (token.type === 'heading') {
      const { text, anchor } = headingOf(token as Tokens.Heading)
      passages.push({ heading: text, anchor, text: '' })
    } else {
      const last = passages.at(-1)
      if (last) last.text += ` ${plain(token)}`
    }
  }
  return passages.map((passage) => ({ ...passage, text: passage.text.replaceAll(/\s+/g, ' ').trim() }))
}

/** The text of a token without its marks. */
function plain(token: Token): string {
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows].flatMap((row) => row.map(({ tokens }) => tokens.map(plain).join(''))).join(' ')
  }
  if (token.type === 'list') return (token as Tokens.List).items.map(plain).join(' ')
  const inner = 'tokens' in token ? token.tokens : undefined
  if (inner !== undefined && inner.length > 0)
    return inner.map(plain).join(token.type === 'list_item' ? ' ' : '')
  return 'text' in token && typeof token.text === 'string' ? unescaped(token.text) : ''
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
