// Starts Chromium and passes on its DevTools protocol. Chromium itself listens on the loopback alone and answers only callers
// who name it by an address; a client that comes through a URL has that URL's name, and must be told it in the answers.
//
// A page that the browser shows can connect here too. A client on this machine must name it by an address, as
// Chromium asks, so that no page gets in by a name of its own; and who has an origin is a page, wherever it comes from.

import { spawn } from 'node:child_process'
import { createServer, request } from 'node:http'
import { connect, isIP } from 'node:net'

const PORT = 9222
const OWN_PORT = 9223
const OWN_HOST = `127.0.0.1:${OWN_PORT}`

const chromium = spawn(
  '/usr/bin/chromium',
  [
    '--headless=new',
    `--remote-debugging-port=${OWN_PORT}`,
    // The unit is the sandbox. Chromium's own needs privileges that no unit has.
    '--no-sandbox',
    '--no-first-run',
    '--no-default-browser-check',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--password-store=basic',
    '--user-data-dir=/home/user/.config/chromium',
    ...process.argv.slice(2),
    'about:blank',
  ],
  { stdio: ['ignore', 'inherit', 'inherit'] },
)
chromium.once('exit', (code, signal) => {
  process.stderr.write(`Chromium ended with ${signal ?? code}.\n`)
  process.exit(code ?? 1)
})
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => chromium.kill(signal))

const server = createServer((asked, answer) => {
  const refusal = refusalOf(asked)
  if (refusal !== null) {
    answer.writeHead(403, { 'content-type': 'text/plain' })
    return answer.end(`${refusal}\n`)
  }
  const { method, url } = asked
  const passed = request({
    port: OWN_PORT,
    host: '127.0.0.1',
    method,
    path: url,
    headers: { host: OWN_HOST },
  })
  passed.once('response', (said) => {
    const parts = []
    said.on('data', (part) => parts.push(part))
    said.once('end', () => {
      const text = named(Buffer.concat(parts).toString('utf8'), asked)
      answer.writeHead(said.statusCode ?? 502, {
        'content-type': said.headers['content-type'] ?? 'application/json',
      })
      answer.end(text)
    })
  })
  passed.once('error', () => {
    // It comes within a second of the unit's start.
    answer.writeHead(503, { 'content-type': 'text/plain', 'retry-after': '1' })
    answer.end('Chromium does not listen yet.\n')
  })
  asked.resume()
  passed.end()
})

server.on('upgrade', (asked, client, head) => {
  client.on('error', () => client.destroy())
  const refusal = refusalOf(asked)
  if (refusal !== null)
    return client.end(
      `HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n${refusal}\n`,
    )
  const own = connect(OWN_PORT, '127.0.0.1')
  own.on('error', () => client.destroy())
  client.on('close', () => own.destroy())
  own.on('close', () => client.destroy())
  const lines = [`GET ${asked.url} HTTP/1.1`, `Host: ${OWN_HOST}`]
  for (let at = 0; at < asked.rawHeaders.length; at += 2) {
    const name = asked.rawHeaders[at]
    if (/^(?:connection|upgrade|sec-websocket-.*)$/i.test(name))
      lines.push(`${name}: ${asked.rawHeaders[at + 1]}`)
  }
  own.write(`${lines.join('\r\n')}\r\n\r\n`)
  own.write(head)
  own.pipe(client).pipe(own)
})

server.listen(PORT, '::')

/** Why a caller is refused; null: it is not. */
function refusalOf({ headers, socket }) {
  if (headers.origin !== undefined) return 'Pages may not control this browser.'
  const { remoteAddress = '', localAddress } = socket
  const isOwn = remoteAddress === localAddress || /^(?:::1$|::ffff:127\.|127\.)/.test(remoteAddress)
  const host = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (!isOwn || host === 'localhost' || isIP(host) !== 0) return null
  return 'From this machine, use http://127.0.0.1:9222.'
}

/** With the addresses that this caller can use. */
function named(text, { headers }) {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'wss' : 'ws'
  const host = headers.host ?? `127.0.0.1:${PORT}`
  return /^[\w.:[\]-]+$/.test(host) ? text.replaceAll(`ws://${OWN_HOST}/`, `${scheme}://${host}/`) : text
}
