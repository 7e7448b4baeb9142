// How an agent uses what each recipe makes: by its real client, through its published endpoint, with what the create
// told it. What is written at first is there after a sleep and in a fork.

import { globSync, readFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectAmqp } from 'amqplib'
import { Etcd3 } from 'etcd3'
import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import pg from 'pg'

export type At = {
  url: string
  host: string
  port: number
  /** Of the authority that endpoints' certificates are from. */
  ca: string
  outputs: Record<string, string>
}

/** Answers what was written; `null` writes nothing and reads. */
export type Use = (at: At, word: string | null) => Promise<string>

const credentials = (url: string | undefined) => {
  const { username, password, pathname } = new URL(url ?? '')
  return {
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
  }
}

const postgres: Use = async ({ host, port, ca, outputs }, word) => {
  const client = new pg.Client({
    host,
    port,
    ...credentials(outputs['DATABASE_URL']),
    ssl: { ca, servername: host },
  })
  await client.connect()
  try {
    await client.query('create table if not exists words (word text)')
    if (word !== null) await client.query('insert into words values ($1)', [word])
    return ((await client.query('select word from words')).rows[0] as { word: string }).word
  } finally {
    await client.end()
  }
}

const mariadb: Use = async ({ host, port, ca, outputs }, word) => {
  const client = await createConnection({ host, port, ...credentials(outputs['DATABASE_URL']), ssl: { ca } })
  try {
    await client.query('create table if not exists words (word text)')
    if (word !== null) await client.query('insert into words values (?)', [word])
    const [rows] = await client.query('select word from words')
    return (rows as { word: string }[])[0]?.word ?? ''
  } finally {
    await client.end()
  }
}

const redis: Use = async ({ host, port, ca, outputs }, word) => {
  const { password } = credentials(outputs['REDIS_URL'])
  const client = new Redis({ host, port, password, tls: { ca, servername: host }, retryStrategy: () => null })
  try {
    if (word !== null) await client.set('word', word)
    return (await client.get('word')) ?? ''
  } finally {
    client.disconnect()
  }
}

const rabbitmq: Use = async ({ host, port, ca, outputs }, word) => {
  const { user, password } = credentials(outputs['AMQP_URL'])
  const at = { protocol: 'amqps', hostname: host, port, username: user, password }
  const connection = await connectAmqp(at, { ca: [ca], servername: host })
  try {
    const channel = await connection.createConfirmChannel()
    await channel.assertQueue('words', { durable: true })
    if (word !== null) {
      channel.sendToQueue('words', Buffer.from(word), { persistent: true })
      await channel.waitForConfirms()
    }
    const message = await channel.get('words')
    if (message === false) return ''
    channel.nack(message)
    return message.content.toString()
  } finally {
    await connection.close()
  }
}

const etcd: Use = async ({ url, ca }, word) => {
  const hosts = url.replace('grpcs:', 'https:')
  const client = new Etcd3({ hosts, credentials: { rootCertificate: Buffer.from(ca) } })
  try {
    if (word !== null) await client.put('word').value(word)
    return (await client.get('word').string()) ?? ''
  } finally {
    client.close()
  }
}

/** A web application that keeps what is sent to it. */
const web: Use = ({ url, host, ca }, word) =>
  new Promise((resolve, reject) => {
    const to = new URL(url)
    const asked = request(
      {
        host: '127.0.0.1',
        port: to.port,
        servername: host,
        headers: { host },
        ca,
        agent: false,
        path: word === null ? '/' : `/?word=${word}`,
      },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => (text += chunk))
        answer.once('end', () => {
          if (answer.statusCode === 200) resolve(text.trim())
          else reject(new Error(`${answer.statusCode}: ${text}`))
        })
      },
    )
    asked.on('error', reject).end()
  })

const nodeApp = `
const { existsSync, readFileSync, writeFileSync } = require('fs')
const greeting = require('greeting')
require('http').createServer((asked, answer) => {
  const word = new URL(asked.url, 'http://x').searchParams.get('word')
  if (word) writeFileSync('/app/word', word)
  answer.end(greeting(existsSync('/app/word') ? readFileSync('/app/word', 'utf8') : ''))
}).listen(process.env.PORT)`

const pythonApp = `
import http.server, os, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        if 'word' in asked:
            open('/app/word', 'w').write(asked['word'][0])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(open('/app/word', 'rb').read() if os.path.exists('/app/word') else b'')
http.server.HTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()`

/** Keeps what is sent to it in its database. */
/** Waits for a database that has just been woken and is not ready yet (57P03), as one that may sleep has to. */
const databaseApp = `
const { Client } = require('pg')
const connect = async (triesLeft = 100) => {
  const client = new Client(process.env.DATABASE_URL)
  try {
    await client.connect()
    return client
  } catch (error) {
    if (error.code !== '57P03' || triesLeft === 0) throw error
    await new Promise((resolve) => setTimeout(resolve, 200))
    return await connect(triesLeft - 1)
  }
}
require('http').createServer(async (asked, answer) => {
  const word = new URL(asked.url, 'http://x').searchParams.get('word')
  let client = null
  try {
    client = await connect()
    await client.query('create table if not exists words (word text)')
    if (word) await client.query('insert into words values ($1)', [word])
    answer.end((await client.query('select word from words')).rows[0]?.word)
  } catch (error) {
    answer.writeHead(500).end(error.message)
  } finally {
    await client?.end().catch(() => {})
  }
}).listen(process.env.PORT)`

/** A package of ours and what it depends on, as an application brings it along that installs nothing. */
function packageFiles(name: string, files: Record<string, string> = {}): Record<string, string> {
  const directory = new URL(`../../node_modules/${name}/`, import.meta.url)
  const description = JSON.parse(readFileSync(new URL('package.json', directory), 'utf8')) as {
    dependencies?: Record<string, string>
  }
  for (const path of globSync('**/*.{js,json}', { cwd: directory, exclude: isNotRun })) {
    files[`node_modules/${name}/${path}`] = readFileSync(new URL(path, directory), 'utf8')
  }
  for (const other of Object.keys(description.dependencies ?? {})) packageFiles(other, files)
  return files
}

const isNotRun = (path: string) => /test|esm|bench|example|node_modules/.test(path)

const greeting = {
  'lib/greeting/package.json': '{ "name": "greeting", "version": "1.0.0", "main": "index.js" }',
  'lib/greeting/index.js': 'module.exports = (word) => word',
}

type Client = {
  params: Record<string, unknown>
  /** What it is published at; null: at its front door, as it is created. */
  port: number | null
  use: Use
  /** What is read after that was written; null: nothing can be written. */
  writes: boolean
}

const database = (port: number, use: Use): Client => ({ params: {}, port, use, writes: true })

export const clients: Record<string, Client> = {
  postgres: database(5432, postgres),
  mariadb: database(3306, mariadb),
  redis: database(6379, redis),
  rabbitmq: database(5672, rabbitmq),
  etcd: database(2379, etcd),
  node: {
    params: {
      files: {
        ...greeting,
        'package.json': JSON.stringify({
          scripts: { start: 'node app/main.js' },
          dependencies: { greeting: 'file:lib/greeting' },
        }),
        'app/main.js': nodeApp,
      },
    },
    port: null,
    use: web,
    writes: true,
  },
  python: { params: { files: { 'main.py': pythonApp } }, port: null, use: web, writes: true },
  static: { params: { files: { 'index.html': 'hello' } }, port: null, use: web, writes: false },
  'web-with-postgres': {
    params: { files: { ...packageFiles('pg'), 'server.js': databaseApp } },
    port: null,
    use: web,
    writes: true,
  },
}
