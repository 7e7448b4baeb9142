// What other sites show where a page is linked: `npm run pictures` draws the picture.

import { readFile } from 'node:fs/promises'
import { escapeHtml } from './html.ts'

export const socialPicturePath = '/docs/social.png'

export const socialPicture = async () => await readFile(new URL('./social.png', import.meta.url))

/** Tags of the head of a page. Sites that read them take whole addresses only. */
export function socialTags(publicUrl: string, title: string): string {
  const tags = {
    'og:site_name': 'Berth',
    'og:title': title,
    'og:description': 'Container units for AI agents, on your own machines.',
    'og:image': publicUrl + socialPicturePath,
    'twitter:card': 'summary_large_image',
  }
  return Object.entries(tags)
    .map(([name, content]) => `<meta property="${name}" content="${escapeHtml(content)}">`)
    .join('')
}
