// A Kubernetes API server in memory, over HTTPS: as much of it as Berth uses. The suite in api-contract.ts runs against it
// and against a real one, so that both answer alike.

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { createServer as createDoor, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { authorityFile, issueCertificate, prepareAuthority } from '../../../src/certificates/authority.ts'
import type { ApiAccess, KubeObject } from '../../../src/kubernetes/api.ts'
import { listen } from '../gateway.ts'

export type FakeObject = KubeObject & {
  apiVersion?: string
  kind?: string
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
}

/** What a token of a pod says of its bearer. */
export type Bearer = { user: string; audiences: string[]; pod?: string; node?: string; nodeUid?: string }

export type FakeApiServer = {
  access: ApiAccess
  /** Tokens that a TokenReview knows. */
  bearers: Map<string, Bearer>
  /** Of every request: method and path. */
  requests: string[]
  /** Ends all connections, and answers no more until it is started again. */
  stop(): void
  start(): void
  /** Ends all watches in the middle of what they say. */
  cutWatches(): void
  /** Watches stay open from now on and say nothing; those to come are as ever. */
  silenceWatches(): void
  /** Forgets what happened, so that watches from before are too old. */
  compact(): void
  /** Refuses this many of the calls to come. */
  refuseNext(count: number, status: number, headers?: Record<string, string>): void
  close(): Promise<void>
}

type Event = { version: number; collection: string; type: string; object: FakeObject }
type Target = { collection: string; namespace: string; name: string | null; sub: string | null }

export async function startFakeApiServer(): Promise<FakeApiServer> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-fake-api-'))
  const authority = { directory, name: 'Fake API server', domain: 'localhost', certificateDays: 2 }
  await prepareAuthority(authority, new Date())
  const pem = await issueCertificate(authority, { names: ['localhost'], usage: 'serverAuth' })
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, 'fake-token\n')

  const state = createState()
  const requests: string[] = []
  let refusals: { status: number; headers: Record<string, string> }[] = []
  const server = createServer({ key: pem, cert: pem }, (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    const refused = refusals.shift()
    if (refused) return answer(response, failure(refused.status, 'Refused'), refused.headers)
    if (request.headers.authorization !== 'Bearer fake-token')
      return answer(response, failure(401, 'Unauthorized'))
    void state.handle(request, response)
  })
  // Its port stays its own while it is away: another test could take it.
  const sockets = new Set<Socket>()
  let isAway = false
  const door = createDoor((socket) => {
    if (isAway) return void socket.resetAndDestroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    server.emit('connection', socket)
  })
  const port = await listen(door)
  return {
    access: { host: 'localhost', port, caFile: authorityFile(directory), tokenFile },
    bearers: state.bearers,
    requests,
    stop: () => {
      isAway = true
      for (const socket of sockets) socket.destroy()
    },
    start: () => {
      isAway = false
    },
    cutWatches: () => state.eachWatch((response) => response.socket?.destroy()),
    silenceWatches: state.silence,
    compact: state.compact,
    refuseNext: (count, status, headers = {}) => {
      refusals = Array.from({ length: count }, () => ({ status, headers }))
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => door.close(resolve))
      await rm(directory, { recursive: true })
    },
  }
}

function createState() {
  const objects = new Map<string, Map<string, FakeObject>>()
  const bearers = new Map<string, Bearer>()
  const watches = new Set<{ response: ServerResponse; take: (event: Event) => void; silent: boolean }>()
  let events: Event[] = []
  let version = 100
  let oldest = 0

  const inCollection = (collection: string) => {
    const all = objects.get(collection) ?? new Map<string, FakeObject>()
    objects.set(collection, all)
    return all
  }
  const record = (type: string, collection: string, object: FakeObject): FakeObject => {
    version += 1
    const said = structuredClone(object)
    said.metadata.resourceVersion = String(version)
    const key = keyOf(said)
    if (type === 'DELETED') inCollection(collection).delete(key)
    else inCollection(collection).set(key, said)
    const event = { version, collection, type, object: said }
    events.push(event)
    for (const watch of watches) if (!watch.silent) watch.take(event)
    return said
  }

  const create = ({ collection, namespace }: Target, body: FakeObject): Answer => {
    const { name } = body.metadata ?? {}
    if (!name) return failure(422, 'Invalid', 'metadata.name: Required value')
    const metadata = {
      ...body.metadata,
      ...(namespace === '' ? {} : { namespace }),
      uid: randomUUID(),
      creationTimestamp: new Date().toISOString(),
    }
    const object = { ...body, metadata }
    if (inCollection(collection).has(keyOf(object))) return failure(409, 'AlreadyExists', `${name} exists`)
    return { status: 201, body: record('ADDED', collection, object) }
  }
  const replace = ({ collection, sub }: Target, found: FakeObject, body: FakeObject): Answer => {
    const asked = body.metadata.resourceVersion
    if (asked !== undefined && asked !== found.metadata.resourceVersion)
      return failure(409, 'Conflict', 'the object has been modified')
    const kept = { ...body, metadata: { ...body.metadata, uid: found.metadata.uid ?? '' } }
    const { status: _status, ...rest } = kept
    const wanted =
      sub === 'status'
        ? { ...found, ...(kept.status && { status: kept.status }) }
        : { ...rest, ...(found.status && { status: found.status }) }
    return { status: 200, body: record('MODIFIED', collection, wanted) }
  }
  const remove = ({ collection }: Target, found: FakeObject, options: DeleteOptions): Answer => {
    const uid = options.preconditions?.uid
    if (uid !== undefined && uid !== found.metadata.uid)
      return failure(409, 'Conflict', 'the UID in the precondition is not that of the object')
    const { nodeName, terminationGracePeriodSeconds } = found.spec ?? {}
    const grace = options.gracePeriodSeconds ?? terminationGracePeriodSeconds ?? 30
    // A pod on a node is there until its kubelet has ended it.
    if (collection.endsWith('/pods') && nodeName && grace !== 0) {
      const metadata = { ...found.metadata, deletionTimestamp: new Date().toISOString() }
      return { status: 200, body: record('MODIFIED', collection, { ...found, metadata }) }
    }
    return { status: 200, body: record('DELETED', collection, found) }
  }
  const evict = (target: Target, pod: FakeObject): Answer => {
    const budgets = [...inCollection('apis/policy/v1/poddisruptionbudgets').values()]
    const isHeld = budgets.some(({ metadata, spec }) => {
      const { matchLabels } = (spec?.['selector'] ?? {}) as { matchLabels?: Record<string, string> }
      const labels = pod.metadata.labels ?? {}
      const isMeant = Object.entries(matchLabels ?? {}).every(([name, value]) => labels[name] === value)
      return metadata.namespace === pod.metadata.namespace && isMeant && pod.status?.['phase'] === 'Running'
    })
    if (isHeld)
      return failure(
        429,
        'TooManyRequests',
        "Cannot evict pod as it would violate the pod's disruption budget.",
      )
    remove(target, pod, {})
    return { status: 201, body: { kind: 'Status', status: 'Success' } }
  }

  const review = (body: FakeObject): Answer => {
    const { token, audiences = [] } = (body.spec ?? {}) as { token?: string; audiences?: string[] }
    const bearer = bearers.get(token ?? '')
    const common = bearer?.audiences.filter((each) => audiences.includes(each)) ?? []
    const extra = (name: string, value: string | undefined) =>
      value === undefined ? {} : { [`authentication.kubernetes.io/${name}`]: [value] }
    const status =
      bearer && common.length > 0
        ? {
            authenticated: true,
            audiences: common,
            user: {
              username: bearer.user,
              extra: {
                ...extra('pod-name', bearer.pod),
                ...extra('node-name', bearer.node),
                ...extra('node-uid', bearer.nodeUid),
              },
            },
          }
        : { authenticated: false, error: 'invalid bearer token' }
    return { status: 201, body: { ...body, status } }
  }

  /** A token of a service account that belongs to a pod, as the kubelet gets it for a projected volume. */
  const issueToken = ({ namespace, name }: Target, body: FakeObject): Answer => {
    const { audiences = [], boundObjectRef } = (body.spec ?? {}) as {
      audiences?: string[]
      boundObjectRef?: { name: string }
    }
    const pod = inCollection('api/v1/pods').get(`${namespace}/${boundObjectRef?.name}`)
    const node = inCollection('api/v1/nodes').get(String(pod?.spec?.['nodeName']))
    const user = `system:serviceaccount:${namespace}:${name}`
    const claims = Buffer.from(JSON.stringify({ sub: user, aud: audiences })).toString('base64url')
    const token = `header.${claims}.${randomUUID()}`
    bearers.set(token, {
      user,
      audiences,
      ...(pod && { pod: pod.metadata.name }),
      ...(node && { node: node.metadata.name, nodeUid: node.metadata.uid ?? '' }),
    })
    return { status: 201, body: { ...body, status: { token } } }
  }

  const list = (target: Target, query: URLSearchParams): Answer => {
    const limit = Number(query.get('limit') ?? 0)
    const [of, from] = (query.get('continue') ?? '').split(' ').map(Number)
    if (from !== undefined && Number(of) < oldest) return failure(410, 'Expired', 'the list is too old')
    const all = [...inCollection(target.collection).values()]
      .filter((object) => isMeant(target, query, object))
      .toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
    const items = limit > 0 ? all.slice(from ?? 0, (from ?? 0) + limit) : all
    const next = (from ?? 0) + items.length
    const more = next < all.length ? { continue: `${of || version} ${next}` } : {}
    return {
      status: 200,
      body: { kind: 'List', metadata: { resourceVersion: String(version), ...more }, items },
    }
  }

  const watch = (target: Target, query: URLSearchParams, response: ServerResponse): void => {
    const from = Number(query.get('resourceVersion') ?? 0)
    response.writeHead(200, { 'content-type': 'application/json' })
    const say = (type: string, object: unknown) => response.write(`${JSON.stringify({ type, object })}\n`)
    if (from < oldest) {
      say('ERROR', failure(410, 'Expired', `too old resource version: ${from} (${oldest})`).body)
      return void response.end()
    }
    const take = ({ collection, type, object }: Event) => {
      if (collection === target.collection && isMeant(target, query, object)) say(type, object)
    }
    for (const event of events) if (event.version > from) take(event)
    const entry = { response, take, silent: false }
    watches.add(entry)
    const end = () => {
      if (entry.silent) return
      if (query.get('allowWatchBookmarks') === 'true')
        say('BOOKMARK', { metadata: { resourceVersion: String(version) } })
      // Its connection may close later.
      watches.delete(entry)
      response.end()
    }
    const late = setTimeout(end, Number(query.get('timeoutSeconds') ?? 1800) * 1000)
    response.once('close', () => {
      clearTimeout(late)
      watches.delete(entry)
    })
    response.flushHeaders()
  }

  const answerOf = (method: string, target: Target, query: URLSearchParams, body: FakeObject): Answer => {
    const { collection, namespace, name, sub } = target
    if (collection.endsWith('/tokenreviews')) return review(body)
    if (name === null)
      return method === 'POST' ? create(target, body) : method === 'GET' ? list(target, query) : notAllowed
    const found = inCollection(collection).get(namespace === '' ? name : `${namespace}/${name}`)
    if (!found) return failure(404, 'NotFound', `"${name}" not found`)
    if (sub === 'token') return issueToken(target, body)
    if (sub === 'eviction') return evict({ ...target, sub: null }, found)
    if (method === 'GET') return { status: 200, body: found }
    if (method === 'PUT') return replace(target, found, body)
    return method === 'DELETE' ? remove(target, found, body as DeleteOptions) : notAllowed
  }

  return {
    bearers,
    handle: async (request: IncomingMessage, response: ServerResponse) => {
      const url = new URL(request.url ?? '/', 'https://localhost')
      const target = targetOf(url.pathname)
      if (!target) return answer(response, failure(404, 'NotFound'))
      if (url.searchParams.get('watch') === 'true') return watch(target, url.searchParams, response)
      let text = ''
      for await (const part of request) text += String(part)
      const body = JSON.parse(text === '' ? '{}' : text) as FakeObject
      answer(response, answerOf(request.method ?? '', target, url.searchParams, body))
    },
    eachWatch: (act: (response: ServerResponse) => void) => {
      for (const { response } of watches) act(response)
    },
    silence: () => {
      for (const each of watches) each.silent = true
    },
    compact: () => {
      version += 1
      oldest = version
      events = []
    },
  }
}

type Answer = { status: number; body: unknown }
type DeleteOptions = { preconditions?: { uid?: string }; gracePeriodSeconds?: number }

const notAllowed = failure(405, 'MethodNotAllowed')

function failure(status: number, reason: string, message = reason): Answer {
  return {
    status,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code: status },
  }
}

function answer(
  response: ServerResponse,
  { status, body }: Answer,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function keyOf({ metadata: { namespace = '', name } }: FakeObject): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** Null for a path that is none of an object or a collection. */
function targetOf(path: string): Target | null {
  const match =
    /^\/(api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    )
  if (!match) return null
  const [, group = '', namespace = '', resource = '', name, sub] = match
  return {
    collection: `${group}/${resource}`,
    namespace: decodeURIComponent(namespace),
    name: name === undefined ? null : decodeURIComponent(name),
    sub: sub ?? null,
  }
}

function isMeant({ namespace }: Target, query: URLSearchParams, { metadata }: FakeObject): boolean {
  if (namespace !== '' && metadata.namespace !== namespace) return false
  const selector = query.get('labelSelector')
  return (selector ?? '')
    .split(',')
    .filter((each) => each !== '')
    .every((each) => {
      const [name = '', value] = each.split('=')
      const label = metadata.labels?.[name]
      return value === undefined ? label !== undefined : label === value
    })
}
