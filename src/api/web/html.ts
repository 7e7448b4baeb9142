// The few pages the server itself shows: no script, no style from elsewhere, nothing a page of another
// origin could frame or post to.

import { createHash } from 'node:crypto'

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 0 1rem; }
  button { font: inherit; padding: 0.5rem 1.25rem; }
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
  // A path can hold a one-time token: only the origin is told, which forms need to prove themselves.
  'referrer-policy': 'strict-origin',
}

/**
 * A whole page around trusted markup; whatever comes from outside goes through `escapeHtml` first. `goTo`: where the
 * browser goes on by itself.
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
