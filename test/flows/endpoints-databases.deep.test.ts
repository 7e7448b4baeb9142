// Databases and brokers in units, woken by their real clients at an endpoint. The clients trust the installation's CA and
// verify the host name. PostgreSQL and MySQL are tested in files of their own.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Client, credentials } from '@grpc/grpc-js'
import { connect as connectAmqp } from 'amqplib'
import { Etcd3 } from 'etcd3'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import neo4j from 'neo4j-driver'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Protocol } from '../../src/contract/endpoint.ts'
import { eventually } from '../support/berth.ts'
import { hibernate, freeze, FROZEN_FOR_S, type Published, publish, waking } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)

const PASSWORD = 'not-secret'

const berth = useBerth({ BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let caFile: string
let ca: string

type Unit = { protocol: Protocol; port: number; spec: Record<string, unknown> }

/** A test server in Python for databases that Debian does not package. */
const python = async (name: string): Promise<Record<string, unknown>> => ({
  image: 'berth.local/python:3.11',
  cmd: ['python3', '/srv/server.py'],
  files: {
    '/srv/server.py': await readFile(new URL(`../support/servers/${name}.py`, import.meta.url), 'utf8'),
  },
})

const units = {
  redis: {
    protocol: 'redis',
    port: 6379,
    spec: { image: 'berth.local/redis:7', env: { REDIS_PASSWORD: PASSWORD } },
  },
  rabbitmq: {
    protocol: 'amqp',
    port: 5672,
    spec: {
      image: 'berth.local/rabbitmq:3',
      size: 'medium',
      env: { RABBITMQ_DEFAULT_USER: 'agent', RABBITMQ_DEFAULT_PASS: PASSWORD },
      // It takes longer to start than a request waits for a running unit.
      healthcheck: { cmd: ['bash', '-c', ': </dev/tcp/127.0.0.1/5672'], timeoutMs: 240_000 },
    },
  },
  etcd: { protocol: 'grpc', port: 2379, spec: { image: 'berth.local/etcd:3.4' } },
  mongo: { protocol: 'mongodb', port: 27_017, spec: await python('mongo') },
  bolt: { protocol: 'bolt', port: 7687, spec: await python('bolt') },
} satisfies Record<string, Unit>

type Name = keyof typeof units
const published = {} as Record<Name, Published>

beforeAll(async () => {
  caFile = berth.credentials.caFile ?? ''
  ca = await readFile(caFile, 'utf8')
  await Promise.all(
    Object.entries(units).map(async ([name, { protocol, port, spec }]) => {
      published[name as Name] = await publish(berth, { ...spec, name, ports: [port] }, { port, protocol })
    }),
  )
})
/** Each client makes a request and returns `done` if the response is right. */
const clients: { client: string; of: Name; ask: (to: Published) => Promise<string> }[] = [
  {
    client: 'redis-cli',
    of: 'redis',
    async ask({ host, port }) {
      const to = ['-h', host, '-p', String(port), '--tls', '--cacert', caFile, '--sni', host]
      const env = { ...process.env, REDISCLI_AUTH: PASSWORD }
      return (await run('redis-cli', [...to, 'echo', 'done'], { env })).stdout.trim()
    },
  },
  {
    client: 'ioredis',
    of: 'redis',
    async ask({ host, port }) {
      // Node's TLS sends no server name unless it is set explicitly.
      const redis = new Redis({
        host,
        port,
        password: PASSWORD,
        tls: { ca, servername: host },
        retryStrategy: () => null,
      })
      try {
        await redis.set('word', 'done')
        return (await redis.get('word')) ?? ''
      } finally {
        redis.disconnect()
      }
    },
  },
  {
    client: 'amqplib',
    of: 'rabbitmq',
    async ask({ host, port }) {
      const who = { username: 'agent', password: PASSWORD }
      const connection = await connectAmqp(
        { protocol: 'amqps', hostname: host, port, ...who },
        { ca: [ca], servername: host },
      )
      const channel = await connection.createChannel()
      await channel.assertQueue('words')
      channel.sendToQueue('words', Buffer.from('done'))
      const word = await eventually(async () => {
        const message = await channel.get('words', { noAck: true })
        if (message === false) throw new Error('the queue is empty')
        return message.content.toString()
      })
      await connection.close()
      return word
    },
  },
  {
    client: '@grpc/grpc-js',
    of: 'etcd',
    async ask({ host, port }) {
      const client = new Client(`${host}:${port}`, credentials.createSsl(Buffer.from(ca)))
      const status = await new Promise<Buffer>((resolve, reject) => {
        const asIs = (bytes: Buffer) => bytes
        const answer = (error: Error | null, reply?: Buffer) =>
          error ? reject(error) : resolve(reply ?? Buffer.alloc(0))
        client.makeUnaryRequest('/grpc.health.v1.Health/Check', asIs, asIs, Buffer.alloc(0), answer)
      })
      client.close()
      // The field `status` with the value SERVING.
      return status.equals(Buffer.from([0x08, 0x01])) ? 'done' : status.toString('hex')
    },
  },
  {
    client: 'etcd3',
    of: 'etcd',
    async ask({ url }) {
      const hosts = url.replace('grpcs:', 'https:')
      const etcd = new Etcd3({ hosts, credentials: { rootCertificate: Buffer.from(ca) } })
      try {
        await etcd.put('word').value('done')
        return (await etcd.get('word').string()) ?? ''
      } finally {
        etcd.close()
      }
    },
  },
  {
    client: 'mongodb',
    of: 'mongo',
    async ask({ url }) {
      const mongo = new MongoClient(`${url}/?directConnection=true&tls=true`, { tlsCAFile: caFile })
      const { ok } = await mongo.db('shop').command({ ping: 1 })
      await mongo.close()
      return ok === 1 ? 'done' : 'not'
    },
  },
  {
    client: 'neo4j-driver',
    of: 'bolt',
    async ask({ host, port }) {
      const trust = 'TRUST_CUSTOM_CA_SIGNED_CERTIFICATES'
      const driver = neo4j.driver(`bolt://${host}:${port}`, neo4j.auth.basic('neo4j', PASSWORD), {
        encrypted: 'ENCRYPTION_ON',
        trust,
        trustedCertificates: [caFile],
      })
      const { records } = await driver.executeQuery('RETURN 7 AS answer')
      await driver.close()
      return Number(records[0]?.get('answer')) === 7 ? 'done' : 'not'
    },
  },
]

describe.each(clients)('$client', ({ of, ask }) => {
  it('gets a response and wakes its unit from a freeze', async () => {
    const to = published[of]
    // The server may not be listening yet.
    await eventually(async () => expect(await ask(to)).toBe('done'), 60_000)
    await freeze(berth, to.unit)
    expect(await waking(berth, to.unit, 'frozen', () => ask(to))).toBe('done')
  })
})

describe('a hibernated unit', () => {
  beforeAll(
    async () =>
      await hibernate(
        berth,
        Object.values(published).map(({ unit }) => unit),
      ),
  )

  it.each(clients.filter(({ client }) => client !== 'ioredis' && client !== 'etcd3'))(
    'is woken by $client',
    async ({ of, ask }) => {
      // A request waits up to 45 seconds for a unit. On a slow machine the server needs longer, and the client retries.
      const untilDone = () => eventually(async () => expect(await ask(published[of])).toBe('done'), 240_000)
      await waking(berth, published[of].unit, 'cold', untilDone)
    },
    300_000,
  )
})
