// A harbour from above, drawn by us, for pages that ask one question: a quay, its piers, ships, and a free berth.

const piers = [36, 166, 296, 426]
  .map((x) => `<path class="pier" d="M${x} 31v118q0 4 4 4h10q4 0 4-4V31"/>`)
  .join('')

const hull = 'M-18 44h36q6 0 6 6v68q0 26-24 46-24-20-24-46V50q0-6 6-6Z'
const ship = (x: number, name: string, cargo: string) =>
  `<g class="${name}" transform="translate(${x} 0)"><path class="hull" d="${hull}"/>${cargo}</g>`

const boxes = [58, 76, 94]
  .flatMap((y) =>
    [-13, 1].map((x) => `<rect class="cargo" x="${x}" y="${y}" width="12" height="14" rx="1.5"/>`),
  )
  .join('')

export const harbour = `<svg class="harbour" viewBox="0 0 480 172" aria-hidden="true">
<rect class="pier" x="0.75" y="0.75" width="478.5" height="30" rx="3"/>${piers}
${ship(110, 'running', boxes)}${ship(240, 'sleeping', '<path class="cargo" d="M8.5 90A11 11 0 0 1-5.5 76 11 11 0 1 0 8.500 90Z"/>')}${ship(370, 'free', '')}
</svg>`

/** The mark of Berth: a ship between its piers. */
export const logo =
  '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M4 20V4h16v16"/><path d="M9 8h6v7q0 3-3 5-3-2-3-5Z"/></svg>'
