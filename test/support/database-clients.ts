// Databases and brokers in units, and their real clients, which trust an authority and verify the host name.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Client, credentials } from '@grpc/grpc-js'
import { connect as connectAmqp } from 'amqplib'
import { Etcd3 } from 'etcd3'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import neo4j from 'neo4j-driver'
import type { Protocol } from '../../src/contract/endpoint.ts'
import { eventually } from './berth.ts'
import type { Published } from './published.ts'

const run = promisify(execFile)

const PASSWORD = 'not-secret'

/** The file of an authority, and what is in it. */
export type Trust = { caFile: string; ca: string }

type DatabaseUnit = { protocol: Protocol; port: number; spec: Record<string, unknown> }

/** A test server in Python for databases that Debian does not package. */
const python = async (name: string): Promise<Record<string, unknown>> => ({
  image: 'berth.local/python:3.11',
  cmd: ['python3', '/srv/server.py'],
  files: {
    '/srv/server.py': await readFile(new URL(`./servers/${name}.py`, import.meta.url), 'utf8'),
  },
})

export const databaseUnits = {
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
} satisfies Record<string, DatabaseUnit>

export type DatabaseName = keyof typeof databaseUnits

/** Each client makes a request and returns `done` if the response is right. */
export const databaseClients: {
  client: string
  of: DatabaseName
  ask: (to: Published, trust: Trust) => Promise<string>
}[] = [
  {
    client: 'redis-cli',
    of: 'redis',
    async ask({ host, port }, { caFile }) {
      const to = ['-h', host, '-p', String(port), '--tls', '--cacert', caFile, '--sni', host]
      const env = { ...process.env, REDISCLI_AUTH: PASSWORD }
      return (await run('redis-cli', [...to, 'echo', 'done'], { env })).stdout.trim()
    },
  },
  {
    client: 'ioredis',
    of: 'redis',
    async ask({ host, port }, { ca }) {
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
    async ask({ host, port }, { ca }) {
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
    async ask({ host, port }, { ca }) {
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
    async ask({ url }, { ca }) {
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
    async ask({ url }, { caFile }) {
      const mongo = new MongoClient(`${url}/?directConnection=true&tls=true`, { tlsCAFile: caFile })
      const { ok } = await mongo.db('shop').command({ ping: 1 })
      await mongo.close()
      return ok === 1 ? 'done' : 'not'
    },
  },
  {
    client: 'neo4j-driver',
    of: 'bolt',
    async ask({ host, port }, { caFile }) {
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
