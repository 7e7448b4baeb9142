// Reliability S16: the sources that may open a connection are a closed list. A source that begins to dial fails here
// until the list says where it dials to, and why no caller decides that.

import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Source → where it connects to. Only `dial.ts` connects to hosts that callers name, and it checks each address. */
const doors: Record<string, string> = {
  'src/api/upgrades.ts': 'nothing: it accepts WebSockets',
  'src/api/ports/pass-on.ts': 'the gateway of this host, over what handover/callers.ts has opened',
  'src/lib/dial.ts': 'public registries, by addresses that were looked at; mirrors of the operator',
  'src/engine/oci/runsc-build/go.ts': 'the module proxy of the operator, or Go’s own',
  'src/lib/public-fetch.ts': 'what strangers name, over dial.ts, which looks at each address',
  'src/engine/oci/images/proxy.ts': 'the same, over what dial.ts has opened',
  'src/engine/oci/images/jailed/fetch.ts': 'the socket of proxy.ts',
  'src/integrations/stripe.ts': 'Stripe, or what the settings name',
  'src/integrations/mail-transport.ts': 'the mail server of the settings',
  'src/domain/providers/github.ts': 'GitHub',
  'src/domain/providers/google.ts': 'Google',
  'src/domain/providers/begin.ts': 'the same providers',
  'src/domain/providers/finish.ts': 'the same providers',
  'src/certificates/acme-client.ts': 'the authority of the settings',
  'src/dns/upstream.ts': 'the name servers of the host',
  'src/dns/resolver.ts': 'nothing: it answers by UDP',
  'src/egress/dial.ts': 'public hosts that the rules of a machine list, by addresses that names.ts looked at',
  'src/egress/http-door.ts': 'the same, over what dial.ts has opened',
  'src/egress/broker/upstream.ts': 'the same, by TLS over what dial.ts has opened',
  'src/egress/broker/session.ts': 'the same',
  'src/egress/broker/http2.ts': 'the same',
  'src/egress/broker/requests.ts': 'the same',
  'src/lib/egress/link-client.ts': 'a socket of this instance',
  'src/gateway/tcp/session.ts': 'a unit, at the address the engine gave it',
  'src/gateway/tcp/mysql/session.ts': 'the same, by TLS over what is open',
  'src/gateway/tcp/postgres/cancel.ts': 'the same',
  'src/gateway/sessions/unit-connections.ts': 'the same',
  'src/gateway/http/door.ts': 'the socket of the server of this instance',
  'src/gateway/sessions/plain-connections.ts': 'the same',
  'src/gateway/http/forwarding.ts': 'the same, over unit-connections.ts',
  'src/gateway/handover/hand-over.ts': 'the same connections as links.ts, kept between requests',
  'src/gateway/handover/callers.ts': 'the socket of the gateway of this host',
  'src/gateway/handover/links.ts': 'the gateways of other hosts, as the server lists them',
  'src/lib/ipc/forwarding.ts': 'the server that leads, as the database says, by its certificate',
  'src/gateway/server-link/client.ts': 'a socket of this instance',
  'src/processes/renewals.ts': 'the same',
  'src/gateway/workers/peers.ts': 'sockets of other gateways of this instance',
  'src/doctor/gateway-workers.ts': 'the gateway of this instance, at the address of the settings',
  'src/engine/ipc/transport.ts':
    'a socket of this instance, or the engine that the operator names, by its certificate',
  'src/lib/ipc/unix-socket.ts': 'a socket of this instance',
  'src/supervisor/postgres/roles.ts': 'Postgres',
  'src/operator/backup/cluster-copy.ts': 'Postgres',
  'src/supervisor/join/join.ts': 'the machine that a join token of the operator names',
  'src/supervisor/join/door.ts':
    'the engine of a machine that shows a join token of the operator, before it may join',
  'src/kubernetes/api.ts': 'the API server of the cluster that the server is a pod of',
  'src/store/db.ts': 'Postgres',
  'src/store/prepared.ts': 'Postgres',
  'src/store/outage.ts': 'nothing: it tells errors of Postgres apart',
}

/** The functions of Node's own modules that open a connection. */
const dials: Record<string, RegExp> = {
  net: /^(?:connect|createConnection)$/,
  tls: /^connect$/,
  http: /^(?:request|get|Agent)$/,
  https: /^(?:request|get|Agent)$/,
  http2: /^connect$/,
  dgram: /^createSocket$/,
}
const clients = ['acme-client', 'nodemailer', 'openid-client', 'pg', 'stripe', 'undici', 'ws']

function isDoor(text: string): boolean {
  if (/(?<![.\w])fetch\(|globalThis\.fetch|new (?:WebSocket|EventSource)\(/.test(text)) return true
  for (const [, clause = '', from = ''] of text.matchAll(/^import ([^'"]*?) from '([^']+)'/gms)) {
    if (clause.startsWith('type ')) continue
    const names = clause
      .replace(/[{}]/g, '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && !name.startsWith('type '))
      .map((name) => name.split(' as ')[0] ?? '')
    const module = from.replace(/^node:/, '')
    if (names.length > 0 && clients.includes(module)) return true
    const begins = dials[module]
    // A module that is imported as a whole can open one too.
    if (begins && names.some((name) => begins.test(name) || name.startsWith('*') || !clause.includes('{')))
      return true
  }
  return false
}

it('the sources that can open a connection are those of a reviewed list', async () => {
  const found: string[] = []
  for await (const path of glob('src/**/*.ts', { cwd: project })) {
    if (path.endsWith('.test.ts')) continue
    if (isDoor(await readFile(`${project}/${path}`, 'utf8'))) found.push(path)
  }
  expect(found.toSorted()).toEqual(Object.keys(doors).toSorted())
})

it.each([
  ["import { connect } from 'node:net'"],
  ["import { type Socket, connect as dial } from 'node:net'"],
  ["import * as https from 'node:https'"],
  ["import http from 'node:http'"],
  ["import {\n  createServer,\n  request,\n} from 'node:http'"],
  ["import { createTransport } from 'nodemailer'"],
  ['const answer = await fetch(url)'],
])('the check finds a source with %j', (text) => expect(isDoor(text)).toBe(true))

it.each([
  ["import { type Agent, createServer } from 'node:http'"],
  ["import type { Socket } from 'node:net'"],
  ['await images.fetch(reference)'],
])('the check ignores a source with %j', (text) => expect(isDoor(text)).toBe(false))
