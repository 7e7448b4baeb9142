// A recorded terminal session as an SVG: in dark colours where the reader's page is dark, in light ones elsewhere.

export type Step = { comment: string | null; command: string; output: string }
export type Session = { recordedAt: string; steps: Step[] }

const COLUMNS = 108
const LINE = 18
const CHARACTER = 7.83
const PADDING = 20
const BAR = 34

type Line = { kind: 'comment' | 'command' | 'output'; text: string }

export function drawSession({ recordedAt, steps }: Session): string {
  const lines = steps.flatMap((step, index) => [...(index === 0 ? [] : [null]), ...linesOf(step)])
  const width = Math.round(COLUMNS * CHARACTER + 2 * PADDING)
  const height = BAR + lines.length * LINE + 2 * PADDING
  const texts = lines.flatMap((line, index) => {
    if (line === null) return []
    const y = BAR + PADDING + index * LINE + 13
    return [
      `  <text class="${line.kind}" x="${PADDING}" y="${y}" xml:space="preserve">${escape(line.text)}</text>`,
    ]
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
  <title id="title">A terminal session with Berth, recorded on ${recordedAt.slice(0, 10)}: a unit is made, sleeps, is woken by a visit, and is copied with its memory</title>
  <style>
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
    .window { fill: #ffffff; stroke: #d0d7de }
    .bar { stroke: #d0d7de }
    .command { fill: #0550ae; font-weight: 600 }
    .output { fill: #24292f }
    .comment, .heading { fill: #57606a }
    @media (prefers-color-scheme: dark) {
      .window { fill: #0d1117; stroke: #30363d }
      .bar { stroke: #30363d }
      .command { fill: #79c0ff }
      .output { fill: #e6edf3 }
      .comment, .heading { fill: #8b949e }
    }
  </style>
  <rect class="window" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
  <line class="bar" x1="0" y1="${BAR}" x2="${width}" y2="${BAR}"/>
  <text class="heading" x="${width / 2}" y="22" text-anchor="middle">Berth, recorded on ${recordedAt.slice(0, 10)}</text>
${texts.join('\n')}
</svg>
`
}

function linesOf({ comment, command, output }: Step): Line[] {
  return [
    ...(comment === null ? [] : [{ kind: 'comment' as const, text: `# ${comment}` }]),
    ...command.split('\n').flatMap((line, index) => wrap('command', `${index === 0 ? '$' : '>'} ${line}`)),
    ...output
      .trimEnd()
      .split('\n')
      .flatMap((line) => wrap('output', line)),
  ]
}

function wrap(kind: Line['kind'], text: string): Line[] {
  const parts = text.match(new RegExp(`.{1,${COLUMNS}}`, 'g')) ?? ['']
  return parts.map((part) => ({ kind, text: part }))
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
