// A connection to a MySQL endpoint, once its TLS is there. Nobody is woken before its client has sent a well-formed
// login; which unit is meant is said by the name in the greeting of TLS, by the port or, since many clients send no
// name and most endpoints have no port to themselves, before the name of the user.

import type { TLSSocket } from 'node:tls'
import { type EndpointLabel, parseEndpointLabel } from '../../../contract/endpoint-label.ts'
import { labelMeant } from '../../routing/asked-label.ts'
import { errorPacket, type Login, MOST_LOGIN_BYTES, readLogin } from './messages.ts'
import { readPacket } from './packets.ts'
import type { Greeted } from '../../listen/mysql-port.ts'
import { pass } from './session.ts'
import type { Visit } from '../../sessions/open-sessions.ts'
import type { Outcome } from '../../sessions/outcomes.ts'
import { mysqlErrors } from '../refusals.ts'
import type { Route } from '../../routing/route.ts'
import { during } from '../session.ts'
import { type Done, findOpen, reach, type Visiting } from '../../sessions/connect-to-unit.ts'

/** Takes the connection to its unit and back, whatever becomes of it, and never rejects. */
export async function receiveMysql(
  visiting: Visiting,
  socket: TLSSocket,
  { serverName, sessionId }: Greeted,
): Promise<void> {
  await during(visiting, { socket, protocol: 'mysql' }, async (visit) => {
    // The greeting had the other half of the time that is left for all of it.
    visit.sinceMs -= visiting.limits.patienceMs.finding / 2
    visit.whenCut(() => socket.destroy())
    const packet = await readPacket(socket, MOST_LOGIN_BYTES)
    const login = packet === null ? null : readLogin(packet)
    if (login === null) return { kind: 'malformed' }
    const label = labelMeant(visiting, { serverName, localPort: socket.localPort })
    const meant = label === null ? readUser(login) : { label, login }
    if (meant === null) {
      socket.write(errorPacket(3, mysqlErrors.noName))
      return { kind: 'over' }
    }
    return await serve(visiting, visit, { socket, sessionId, ...meant })
  })
}

type Meant = { label: EndpointLabel; login: Login }

/** `label.user`: a label has no dot in it. */
function readUser(login: Login): Meant | null {
  const dot = login.user.indexOf('.')
  const label = dot < 0 ? null : parseEndpointLabel(login.user.subarray(0, dot).toString('latin1'))
  return label === null ? null : { label, login: { ...login, user: login.user.subarray(dot + 1) } }
}

async function serve(
  visiting: Visiting,
  visit: Visit,
  { socket, sessionId, label, login }: Meant & { socket: TLSSocket; sessionId: number },
): Promise<Outcome | Done> {
  const isMeant = ({ protocol }: Route) => protocol === 'mysql'
  const route = await findOpen(visiting, label, isMeant).catch(() => 'unsure' as const)
  if (route === 'unsure') return { kind: 'unsure' }
  if (route === null) return { kind: 'unknown' }
  visit.name = label.name
  if (!visiting.visits.enterUnit(visit, route)) return { kind: 'too-many' }
  const { refusingSessionMs: refusingMs } = visiting.limits
  return await reach(visiting, { visit, label, isMeant, refusingMs }, route, (run) =>
    pass(visiting, visit, { socket, sessionId, login, run }),
  )
}
