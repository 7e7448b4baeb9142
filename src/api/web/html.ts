// The few pages the server itself shows. They have no script and no style from elsewhere, and pages of another origin
// cannot frame them or post to them.

import { createHash } from 'node:crypto'

const style = `
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 0 1rem; }
  button { font: inherit; padding: 0.5rem 1.25rem; }
  input, textarea, select { font: inherit; padding: 0.25rem 0.5rem; max-width: 100%; box-sizing: border-box; }
  textarea, input[type=text] { width: 100%; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; margin: 1rem 0; }
  dt { opacity: 0.75; }
  dd { margin: 0; overflow-wrap: anywhere; }
  dd strong { font-size: 1.15em; }
  fieldset { border: 1px solid GrayText; border-radius: 0.5rem; margin: 1.25rem 0; padding: 0.75rem 1rem 1rem; }
  legend { padding: 0 0.4rem; font-weight: 600; }
  fieldset p { margin: 0.75rem 0 0; }
  label small, .note { opacity: 0.75; }
  .choices label { display: inline-block; margin-right: 1rem; }
  .warning { border-left: 0.3rem solid #c77700; padding: 0.1rem 0 0.1rem 0.8rem; }
  .wrong { color: light-dark(#b3261e, #ff8a80); font-weight: 600; }
  pre { font-size: 0.875rem; padding: 0.6rem 0.75rem; border: 1px solid GrayText; border-radius: 0.375rem; white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; margin: 0.5rem 0; }
  code { overflow-wrap: anywhere; }
  h2 { margin: 2.5rem 0 0.5rem; font-size: 1.25rem; }
  h3 { margin: 1.25rem 0 0.25rem; font-size: 1rem; }
  pre + .note { margin: 0.25rem 0 0; }
  .rows { list-style: none; padding: 0; }
  .rows li { display: flex; gap: 1rem; align-items: center; justify-content: space-between; border-top: 1px solid GrayText; }
  .actions { display: flex; gap: 1rem; flex-wrap: wrap; }
  .actions .main { font-weight: 600; }
  @media (max-width: 30rem) { body { margin: 2rem auto; } dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: 0.5rem; } }
`

const styleHash = createHash('sha256').update(style).digest('base64')

export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  // A path can contain a one-time token, so only the origin is sent; forms need it to prove where they come from.
  'referrer-policy': 'strict-origin',
}

/**
 * Returns a whole page around trusted markup; escape everything else with `escapeHtml` first. `goTo` is a URL that
 * the browser opens by itself.
 */
export function htmlPage(
  title: string,
  markup: string,
  { goTo = null }: { goTo?: string | null } = {},
): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${goTo === null ? '' : `<meta http-equiv="refresh" content="0; url=${escapeHtml(goTo)}">`}<title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${markup}
</body></html>
`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
