// What a program in a machine sees of the network: each step of its argument is tried, and its outcome printed.

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { decode, encode, type RecordType } from 'dns-packet'

export type Step =
  /** TLS to an address, asking for a name (empty: none). */
  | { tls: string; name: string; takeBytes?: number }
  /** Sends this text, and gives what comes back. */
  | { tcp: string; port: number; say: string }
  | { udp: string; port: number }
  | { dns: string; type: string }
  | { connects: number; tls: string; name: string }

export type Outcome =
  | { said: string }
  | { error: string }
  | { ms: number; bytes: number }
  | { times: number[] }

const gateway = process.argv[2] ?? ''
const steps = JSON.parse(process.argv[3] ?? '[]') as Step[]
const outcomes: Outcome[] = []
for (const step of steps)
  outcomes.push(await tryStep(step).catch((error: NodeJS.ErrnoException) => failed(error)))
process.stdout.write(JSON.stringify(outcomes))
process.exit(0)

function failed(error: NodeJS.ErrnoException): Outcome {
  return { error: `${error.code ?? ''} ${error.message}`.trim() }
}

async function tryStep(step: Step): Promise<Outcome> {
  if ('dns' in step) return { said: await askName(step.dns, step.type) }
  if ('udp' in step) return { said: await overUdp(step.udp, step.port) }
  if ('connects' in step) return { times: await timeConnects(step) }
  if ('tcp' in step) return { said: await overTcp(step.tcp, step.port, step.say) }
  return await overTls(step.tls, step.name, step.takeBytes ?? 0)
}

function overTls(host: string, name: string, takeBytes: number): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host,
      port: 443,
      rejectUnauthorized: false,
      ...(name === '' ? {} : { servername: name }),
    })
    socket.setTimeout(5000, () => socket.destroy(new Error('silent')))
    let bytes = 0
    const since = performance.now()
    socket.once('error', reject)
    socket.on('data', (chunk: Buffer) => {
      if (bytes === 0 && takeBytes === 0) {
        socket.destroy()
        return resolve({ said: chunk.toString() })
      }
      if (bytes === 0) socket.write(`give ${takeBytes}\n`)
      bytes += chunk.length
    })
    socket.once('close', () => resolve({ ms: performance.now() - since, bytes }))
  })
}

/** Returns the times to the first byte behind a finished handshake, one connection after the other. */
async function timeConnects({
  connects,
  tls,
  name,
}: {
  connects: number
  tls: string
  name: string
}): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < connects; i++) {
    const since = performance.now()
    await overTls(tls, name, 0)
    times.push(performance.now() - since)
  }
  return times
}

function overTcp(host: string, port: number, say: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: 3000 }, () => socket.write(say))
    let said = ''
    socket.on('timeout', () => (said === '' ? socket.destroy(new Error('silent')) : socket.destroy()))
    socket.once('error', reject)
    socket.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1')
      if (port === 22) socket.destroy()
    })
    socket.once('close', () => resolve(said))
  })
}

function overUdp(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    socket.once('error', reject)
    socket.once('message', (bytes) => resolve(bytes.toString()))
    socket.connect(port, host, () => socket.send('quic'))
    setTimeout(() => reject(new Error('silent')), 1500)
  })
}

function askName(name: string, type: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    socket.once('error', reject)
    setTimeout(() => reject(new Error('silent')), 4000)
    socket.once('message', (bytes) => {
      const answer = decode(bytes)
      const rcode = (answer.flags ?? 0) & 0xf
      const records = (answer.answers ?? []).map((record) =>
        record.type === 'A' ? record.data : record.type,
      )
      resolve(`${rcode} ${records.join(' ')}`.trim())
    })
    const question = { type: type as RecordType, name }
    socket.send(encode({ type: 'query', id: 7, flags: 0x100, questions: [question] }), 53, gateway)
  })
}
