// The operator’s log names each peer or unit that reaches a limit of the gateway.

import { connect, type Socket } from 'node:net'
import { pino } from 'pino'
import { afterEach, expect, it } from 'vitest'
import { startGateway, startRawOrigin, type RawOrigin, type TestGateway } from '../../test/support/gateway.ts'
import { boundsIn, lineSink } from '../../test/support/logged.ts'
import type { SessionLimits } from './sessions/session-limits.ts'

const PEER = '127.0.0.4'

let gateway: TestGateway
let origin: RawOrigin
let told: string[]
let sockets: Socket[]

async function start(limits: Partial<SessionLimits>): Promise<string> {
  told = []
  sockets = []
  gateway = await startGateway(limits, { log: pino(lineSink(told)) })
  // An origin that never responds.
  origin = await startRawOrigin((socket) => socket.resume())
  return gateway.expose(origin.port, { unitId: 'unit_crowded' })
}
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

function ask(host: string): void {
  const socket = connect({ port: gateway.port, host: '127.0.0.1', localAddress: PEER })
  socket.on('error', () => {})
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  sockets.push(socket.resume())
}

it.each<[bound: string, by: string | null, limits: Partial<SessionLimits>]>([
  ['connections to the gateway', PEER, { connectionsPerPeer: 2 }],
  ['connections to the gateway', null, { connections: 2 }],
  ['visits at once', PEER, { visitsPerPeer: 2 }],
  ['visits at once', null, { visits: 2 }],
  ['visits to one unit', 'unit_crowded', { visitsPerUnit: 2 }],
])('the log names a reached limit: %s, by %s', async (bound, by, limits) => {
  const host = await start(limits)
  for (let asked = 0; asked < 5; asked += 1) ask(host)
  await expect.poll(() => boundsIn(told)).toEqual([[bound, by]])
})

it('the log names the unit for which too many visits wait', async () => {
  const host = await start({ waitingPerUnit: 2 })
  gateway.isAwake = () => false
  gateway.onWake = () => new Promise(() => {})
  for (let asked = 0; asked < 5; asked += 1) ask(host)
  await expect.poll(() => boundsIn(told)).toEqual([['visits that wait for one unit', 'unit_crowded']])
})
