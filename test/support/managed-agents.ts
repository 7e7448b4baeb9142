// A control plane of Claude Managed Agents in memory, as the vendor's libraries see it: a queue with leases, sessions with
// events, a token for each item. It asserts whose credential comes where, and fails where a test asks for it.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerMemories, answerSkill, type Stores } from './managed-memory.ts'

type Event = { id: string; type: string; [field: string]: unknown }

type Item = {
  id: string
  session: string
  kind: string
  state: 'queued' | 'starting' | 'active' | 'stopped'
  token: string | null
  leasedAt: number | null
  ackedAt: string | null
  beatAt: string | null
  /** By whom each poll gave it. */
  givenTo: string[]
}

type Session = {
  id: string
  status: 'running' | 'idle' | 'terminated'
  metadata: Record<string, string>
  resources: object[]
  skills: { type: string; skill_id: string; version: string }[]
  isDeleted: boolean
  archivedAt: string | null
  events: Event[]
  followers: Set<ServerResponse>
}

export type Asked = { name: string; input: Record<string, unknown>; ask?: boolean }
export type Told = { text: string; isError: boolean }

export type ManagedAgents = {
  url: string
  environment: string
  key: string
  items: Item[]
  /** How often the queue was asked. */
  polls: number
  /** Calls with a credential that is not for them, and results that were sent twice. */
  faults: string[]
  /** Of its clock, against that of everybody else. */
  aheadMs: number
  /** Polls are answered so; null: as they should be. */
  answerPollsWith: { status: number; body: string } | null
  /** What is remembered in memory stores. */
  stores: Stores
  /** What its server does, for one that is reached elsewhere. */
  listener: RequestListener
  begin: (
    session?: Partial<Pick<Session, 'metadata' | 'resources' | 'skills'>>,
    item?: Partial<Item>,
  ) => Session
  /** Another item of the session, as a new message makes one. */
  queue: (session: Session, item?: Partial<Item>) => Item
  /** The model calls a tool. Resolves with what the tool said. */
  call: (session: Session, asked: Asked) => Promise<Told>
  /** The call whose confirmation was held may run. */
  confirm: (session: Session) => void
  endTurn: (session: Session) => void
  terminate: (session: Session) => void
  archive: (session: Session) => void
  delete: (session: Session) => void
  /** The leases of all items under way are over. */
  lapse: () => void
  close: () => Promise<void>
}

const TTL_SECONDS = 20
const environment = 'env_test'
const key = 'sk-ant-oat01-of-the-environment'

export async function startManagedAgents(): Promise<ManagedAgents> {
  const sessions = new Map<string, Session>()
  const waiting = new Map<string, (told: Told) => void>()
  const items: Item[] = []
  const faults: string[] = []

  const emit = (session: Session, event: { id?: string; type: string; [field: string]: unknown }): Event => {
    const whole: Event = { id: `sevt_${randomUUID()}`, ...event }
    session.events.push(whole)
    for (const follower of session.followers) tell(follower, whole)
    return whole
  }

  const fake: ManagedAgents = {
    url: '',
    environment,
    key,
    items,
    faults,
    polls: 0,
    aheadMs: 0,
    answerPollsWith: null,
    stores: new Map(),
    listener: (request, response) => {
      handle(request, response).catch((error: unknown) => {
        faults.push(String(error))
        response.destroy()
      })
    },

    begin({ metadata = {}, resources = [], skills = [] } = {}, item) {
      const id = `sesn_${randomUUID().replaceAll('-', '')}`
      const rest = { isDeleted: false, archivedAt: null, events: [], followers: new Set<ServerResponse>() }
      const session: Session = { id, status: 'running', metadata, resources, skills, ...rest }
      sessions.set(id, session)
      fake.queue(session, item)
      return session
    },

    queue(session, given = {}) {
      session.status = 'running'
      const id = `work_${randomUUID().replaceAll('-', '')}`
      const times = { leasedAt: null, ackedAt: null, beatAt: null, givenTo: [] }
      const rest = { kind: 'session', state: 'queued' as const, token: `tok-${id}`, ...times }
      const item: Item = { id, session: session.id, ...rest, ...given }
      items.push(item)
      return item
    },

    async call(session, { name, input, ask = false }) {
      const told = Promise.withResolvers<Told>()
      const id = `sevt_${randomUUID()}`
      waiting.set(id, told.resolve)
      emit(session, { id, type: 'agent.tool_use', name, input, evaluated_permission: ask ? 'ask' : 'allow' })
      if (ask)
        emit(session, {
          type: 'session.status_idle',
          stop_reason: { type: 'requires_action', event_ids: [id] },
        })
      return await told.promise
    },

    confirm(session) {
      const held = session.events.findLast(({ evaluated_permission }) => evaluated_permission === 'ask')
      emit(session, { type: 'user.tool_confirmation', tool_use_id: held?.id, result: 'allow' })
    },

    endTurn(session) {
      session.status = 'idle'
      emit(session, { type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
    },

    terminate(session) {
      session.status = 'terminated'
      emit(session, { type: 'session.status_terminated' })
    },

    archive(session) {
      session.archivedAt = new Date().toISOString()
    },

    delete(session) {
      session.isDeleted = true
      emit(session, { type: 'session.deleted' })
    },

    lapse() {
      for (const item of items) if (item.state === 'active') item.beatAt = new Date(0).toISOString()
    },

    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  const poll = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => {
    fake.polls++
    if (fake.answerPollsWith) {
      const { status, body } = fake.answerPollsWith
      return void response
        .writeHead(status, { 'content-type': body.startsWith('<') ? 'text/html' : 'application/json' })
        .end(body)
    }
    const reclaimMs = Number(query.get('reclaim_older_than_ms') ?? Infinity)
    const now = Date.now() + fake.aheadMs
    const isFree = ({ state, leasedAt, beatAt }: Item) =>
      (state === 'queued' && (leasedAt === null || now - leasedAt > reclaimMs)) ||
      (state === 'active' && now - Date.parse(beatAt ?? '') > TTL_SECONDS * 1000)
    const item = items.find(isFree)
    if (!item) return answer(response, 200, null)
    if (item.state === 'active') Object.assign(item, { state: 'queued', beatAt: null, ackedAt: null })
    item.leasedAt = now
    item.givenTo.push(String(request.headers['anthropic-worker-id']))
    const { token } = item
    const secret =
      token === null ? null : Buffer.from(JSON.stringify({ sessions_token: token })).toString('base64url')
    answer(response, 200, { ...shown(item), secret })
  }

  const heartbeat = (response: ServerResponse, item: Item, query: URLSearchParams) => {
    const expected = query.get('expected_last_heartbeat')
    const known = item.beatAt ?? 'NO_HEARTBEAT'
    if (item.state === 'queued' || (expected !== null && expected !== known))
      return answer(response, 412, {
        type: 'error',
        error: { type: 'precondition_failed', message: 'another lease' },
      })
    if (item.state === 'starting') item.state = 'active'
    item.beatAt = new Date(Date.now() + fake.aheadMs).toISOString()
    const { state, beatAt } = item
    answer(response, 200, {
      state,
      last_heartbeat: beatAt,
      lease_extended: state === 'active',
      ttl_seconds: TTL_SECONDS,
    })
  }

  const onEvents = async (request: IncomingMessage, response: ServerResponse, session: Session) => {
    const { events } = JSON.parse(await bodyOf(request)) as {
      events: { type: string; tool_use_id: string; is_error?: boolean; content?: { text?: string }[] }[]
    }
    for (const event of events) {
      if (
        session.events.some(
          ({ type, tool_use_id }) => type === event.type && tool_use_id === event.tool_use_id,
        )
      )
        faults.push(`the result of ${event.tool_use_id} came twice`)
      emit(session, event)
      const text = (event.content ?? []).map((block) => block.text ?? '').join('')
      waiting.get(event.tool_use_id)?.({ text, isError: event.is_error === true })
    }
    answer(response, 200, { data: [] })
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake')
    const bearer = (request.headers.authorization ?? '').replace('Bearer ', '')
    const refuse = (status: number) =>
      answer(response, status, { type: 'error', error: { type: 'refused', message: 'refused' } })
    const [, , root, id = '', part, third = '', fourth] = pathname.split('/')
    if (root === 'environments' && part === 'work') {
      if (id !== environment) return refuse(404)
      if (third === 'poll' || third === '') {
        if (bearer !== key) {
          fake.polls++
          return refuse(401)
        }
        if (third === '') return answer(response, 200, { data: items.map(shown), next_page: null })
        return poll(request, response, searchParams)
      }
      const item = items.find((each) => each.id === third)
      if (!item) return refuse(404)
      if (bearer !== key && bearer !== item.token) {
        faults.push(`${fourth} of ${item.id} with the credential ${bearer}`)
        return refuse(401)
      }
      if (fourth === 'ack') {
        if (item.state !== 'queued') return refuse(409)
        Object.assign(item, { state: 'starting', ackedAt: new Date(Date.now() + fake.aheadMs).toISOString() })
        return answer(response, 200, shown(item))
      }
      if (fourth === 'heartbeat') return heartbeat(response, item, searchParams)
      if (item.state === 'stopped') return refuse(409)
      item.state = 'stopped'
      return answer(response, 200, shown(item))
    }
    if (root === 'memory_stores' || root === 'skills') {
      // The vendor takes no key of an environment here.
      if (!items.some(({ token }) => token === bearer)) {
        faults.push(`${pathname} with the credential ${bearer}`)
        return refuse(401)
      }
      const { method = '' } = request
      const told =
        root === 'skills'
          ? answerSkill(id, third, fourth)
          : answerMemories(fake.stores, {
              method,
              store: id,
              id: third || undefined,
              body: await bodyOf(request),
            })
      if (Buffer.isBuffer(told)) return void response.writeHead(200).end(told)
      return answer(response, told.status, told.body)
    }
    const session = sessions.get(id)
    if (root !== 'sessions' || !session || session.isDeleted) return refuse(404)
    const isOwn = items.some(({ token, session: of }) => of === id && token === bearer)
    if (bearer !== key && !isOwn) {
      faults.push(`${pathname} with the credential ${bearer}`)
      return refuse(401)
    }
    if (part === undefined) {
      const { status, metadata, resources, skills, archivedAt } = session
      return answer(response, 200, {
        id,
        type: 'session',
        status,
        metadata,
        resources,
        archived_at: archivedAt,
        agent: { skills },
      })
    }
    if (third === 'stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      session.followers.add(response)
      return void response.once('close', () => session.followers.delete(response))
    }
    if (request.method === 'GET') return answer(response, 200, { data: session.events, next_page: null })
    return await onEvents(request, response, session)
  }

  const server: Server = createServer(fake.listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return fake
}

function shown({ id, session, kind, state, ackedAt, beatAt }: Item): object {
  const times = { acknowledged_at: ackedAt, latest_heartbeat_at: beatAt }
  return { id, type: 'work', environment_id: environment, state, data: { type: kind, id: session }, ...times }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function tell(response: ServerResponse, event: Event): void {
  response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
