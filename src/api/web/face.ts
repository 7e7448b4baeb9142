// The typeface of the dashboard, for the server's own pages and the documentation too: the same file under the same
// name, which browsers keep for ever. Where no dashboard is built, these pages have the system's typeface.

import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Made by scripts/build-dashboard.ts. */
export const builtDashboard = fileURLToPath(new URL('../../../packages/dashboard/dist', import.meta.url))

const path = pathOfFace()

function pathOfFace(): string | null {
  try {
    const name = readdirSync(`${builtDashboard}/assets`).find((each) => /^inter-.*\.woff2$/.test(each))
    return name === undefined ? null : `/assets/${name}`
  } catch {
    return null
  }
}

/** For a stylesheet. `optional`: text never moves because the file came late; it is there on the next page. */
export const faceRule =
  path === null
    ? ''
    : `@font-face {
  font-family: "Inter";
  font-style: normal;
  font-weight: 100 900;
  font-display: optional;
  src: url("${path}") format("woff2");
}
`

/** For the head of a page, so that the first page has it where the connection is quick. */
export const facePreload =
  path === null ? '' : `<link rel="preload" href="${path}" as="font" type="font/woff2" crossorigin>`
