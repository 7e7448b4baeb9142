// `npm run session`: records docs/images/session.json, a terminal session with a Berth of its own, and draws it as
// docs/images/session.svg, the picture of the README. With `-- --draw` it only draws what was recorded. The commands
// are run by bash as they are shown, and what is shown below them is what they printed.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { destroyAll } from '../test/support/berth-units.ts'
import { Berth, makeDataDir } from '../test/support/berth.ts'
import { drawSession, type Session, type Step } from './session-picture.ts'

const run = promisify(execFile)

/** A server that counts its visits in memory alone. */
const counter = `import http.server
visits = 0
class Counter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global visits
        visits += 1
        self.send_response(200); self.end_headers()
        self.wfile.write(f"visit {visits}\\n".encode())
http.server.HTTPServer(("", 8000), Counter).serve_forever()
`

const steps: { comment?: string; command: string; before?: string }[] = [
  { comment: 'counter.py counts its visits, in memory alone', command: 'tail -n 4 counter.py' },
  {
    comment: 'a unit that runs it, at a public URL',
    command: `jq -n --rawfile code counter.py '{expose: "public", spec: {name: "counter",
    image: "berth.local/python:3.11", cmd: ["python3", "-c", $code], ports: [8000], sleep: "1m"}}' |
  berth POST /v1/units >made.json; jq -c '(.units[0] | {id, state}), .outputs' made.json`,
  },
  {
    command: 'UNIT=$(jq -r .units[0].id made.json) WEB=$(jq -r .outputs.URL made.json); curl $WEB; curl $WEB',
  },
  {
    comment: 'a minute without a visit: it sleeps, and costs nothing for compute',
    before: `until [ "$(berth GET /v1/units/$UNIT | jq -r .state)" = sleeping ]; do sleep 1; done`,
    command: `berth GET /v1/units/$UNIT | jq -c '{state, stoppedReason, costCentsSoFar}'`,
  },
  {
    comment: 'the next visit wakes it, with its memory',
    command: `curl -w 'first byte after %{time_starttransfer} s, TLS included\\n' $WEB`,
  },
  {
    comment: 'a copy of it as it is now, memory and all',
    command: `echo '{"name": "counter-2"}' | berth POST /v1/units/$UNIT/fork >copy.json; jq -c .copied copy.json`,
  },
  {
    command: `jq -n '{cmd: ["python3", "-c", "from urllib.request import *; print(urlopen(\\"http://127.0.0.1:8000\\").read())"]}' |
  berth POST /v1/units/$(jq -r .units[0].id copy.json)/exec | jq -c '{exitCode, stdout}'`,
  },
  {
    comment: 'who did what, how it ended and what it cost',
    command: `berth GET '/v1/audit?limit=4' | jq -c '.events[] | [.action, .status, .durationMs, .costDeltaCents]'`,
  },
]

const json = new URL('../docs/images/session.json', import.meta.url)
const svg = new URL('../docs/images/session.svg', import.meta.url)

const { values } = parseArgs({ options: { draw: { type: 'boolean', default: false } } })
if (!values.draw) await writeFile(json, `${JSON.stringify(await record(), null, 2)}\n`)
await writeFile(svg, drawSession(JSON.parse(await readFile(json, 'utf8')) as Session))
console.log(`wrote ${svg.pathname}`)

async function record(): Promise<Session> {
  const data = await makeDataDir()
  const home = await mkdtemp('/var/tmp/berth-session-')
  const berth = await new Berth(data.path).start({ BERTH_ISOLATION: 'runc' })
  try {
    await writeFile(join(home, 'counter.py'), counter)
    await prepareImage(berth)
    return { recordedAt: new Date().toISOString(), steps: await runAll(berth, home) }
  } finally {
    await destroyAll(berth)
    await berth.pressCtrlC()
    await data.remove()
    await rm(home, { recursive: true })
  }
}

/** The first unit of an image waits for it to be built. */
async function prepareImage(berth: Berth): Promise<void> {
  const spec = { name: 'first', image: 'berth.local/python:3.11' }
  const made = await berth.call<{ units: { id: string }[] }>('POST', '/v1/units', {
    spec,
    waitTimeoutMs: 300_000,
  })
  await berth.call('DELETE', `/v1/units/${made.body.units[0]?.id}`)
}

/** In one shell, so that what one command sets the next one has. */
async function runAll(berth: Berth, home: string): Promise<Step[]> {
  const { baseUrl, apiKey, caFile } = berth.credentials
  const mark = '--- the next command ---'
  const script = [
    `berth() { curl -sS -X "$1" "${baseUrl}$2" -H "authorization: Bearer $KEY" -H 'content-type: application/json' $([ "$1" = POST ] && echo --data-binary @-); }`,
    `curl() { command curl -sS --cacert ${caFile} "$@"; }`,
    ...steps.flatMap(({ before, command }) => [...(before ? [before] : []), command, `echo '${mark}'`]),
  ].join('\n')
  const options = { cwd: home, env: { PATH: process.env['PATH'] ?? '', KEY: apiKey }, timeout: 300_000 }
  const { stdout, stderr } = await run('bash', ['--norc', '-c', script], options)
  if (stderr !== '') throw new Error(`the session printed an error: ${stderr}`)
  const outputs = stdout.split(`${mark}\n`)
  return steps.map(({ comment, command }, index) => ({
    comment: comment ?? null,
    command,
    output: outputs[index] ?? '',
  }))
}
