// A program as users of E2B write it, pointed at a Berth by E2B_DOMAIN and E2B_API_KEY alone. It prints what it met as one
// line of JSON. A program of its own, because Node reads the authority that it trusts only when it starts.

import { setTimeout as delay } from 'node:timers/promises'
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create({ requestTimeoutMs: 600_000 })
const visit = async (port: number): Promise<[number, string]> => {
  const answer = await fetch(`https://${sandbox.getHost(port)}/file`)
  return [answer.status, await answer.text()]
}

const command = await sandbox.commands.run('echo there')
const closed = await visit(3000)
await sandbox.files.write('served/file', 'served')
await sandbox.commands.run('python3 -m http.server 3000 --directory served', {
  background: true,
  timeoutMs: 0,
})
let opened = await visit(3000)
for (let tries = 0; opened[0] !== 200 && tries < 100; tries += 1) {
  await delay(200)
  opened = await visit(3000)
}

const alone = [
  'import http.server as h, socket, sys',
  'class S(h.ThreadingHTTPServer): address_family = getattr(socket, sys.argv[3])',
  'S((sys.argv[1], int(sys.argv[2])), h.SimpleHTTPRequestHandler).serve_forever()',
].join('\n')
await sandbox.files.write('alone.py', alone)
const visitAlone = async (address: string, port: number, family: string): Promise<[number, string]> => {
  const command = `cd served && python3 ../alone.py ${address} ${port} ${family}`
  const server = await sandbox.commands.run(command, { background: true, timeoutMs: 0 })
  let answer = await visit(port)
  for (let tries = 0; answer[0] !== 200 && tries < 100; tries += 1) answer = await visit(port)
  await server.kill()
  return answer
}
const alones = [await visitAlone('127.0.0.1', 3001, 'AF_INET'), await visitAlone('::1', 3002, 'AF_INET6')]
const ended = await visit(3001)

const download = await sandbox.downloadUrl('served/file', { useSignatureExpiration: 60 })
const downloaded = await (await fetch(download)).text()
const other = new URL(download)
other.searchParams.set('path', 'served/other')
const forged = (await fetch(other)).status
const upload = await sandbox.uploadUrl('uploaded')
const form = new FormData()
form.append('file', new Blob(['uploaded']), 'uploaded')
const uploaded = (await fetch(upload, { method: 'POST', body: form })).status
const read = await sandbox.files.read('uploaded')

const ports: number[] = []
for (const port of [0, 65_536]) ports.push((await visit(port))[0])
await sandbox.pause()
const paused = await visit(3000)
const stillPaused = (await sandbox.getInfo()).state
await sandbox.connect()
const resumed = await visit(3000)
await sandbox.kill()
const gone = await visit(3000)
const isRunning = await sandbox.isRunning()

const visitors = await Sandbox.create({
  network: { allowPublicTraffic: false, maskRequestHost: 'mine.example:${PORT}' },
  lifecycle: { onTimeout: 'pause', autoResume: true },
})
const SHOW = `from http.server import *
class Show(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers['host'].encode())
HTTPServer(('', 3000), Show).serve_forever()`
await visitors.files.write('show.py', SHOW)
await visitors.commands.run('python3 show.py', { background: true, timeoutMs: 0 })
const show = async (headers: Record<string, string>): Promise<[number, string]> => {
  const answer = await fetch(`https://${visitors.getHost(3000)}/`, { headers })
  return [answer.status, await answer.text()]
}
const token = { 'e2b-traffic-access-token': visitors.trafficAccessToken ?? '' }
let shown = await show(token)
for (let tries = 0; shown[0] !== 200 && tries < 100; tries += 1) {
  await delay(200)
  shown = await show(token)
}
const [refused] = await show({})
await visitors.pause()
const woken = await show(token)
const { state, endAt } = await visitors.getInfo()
const left = endAt.getTime() - Date.now()
await visitors.pause()
const { stdout: again } = await visitors.commands.run('echo again')
await visitors.kill()

const seen = { shown, refused, woken, state, hasTime: left > 60_000 && left < 301_000, again }
const met = {
  stdout: command.stdout,
  closed,
  opened,
  alones,
  ended,
  downloaded,
  forged,
  uploaded,
  read,
  ports,
}
process.stdout.write(`${JSON.stringify({ ...met, paused, stillPaused, resumed, gone, isRunning, seen })}\n`)
process.exit(0)
