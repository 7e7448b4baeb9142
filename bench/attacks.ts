// The attacks of one free account on a Berth, in a separate process that `bench/neighbours.ts` starts. The command line
// has the name of the attack, and `ATTACK` has its other arguments in JSON. The process prints "begun"
// once the attack runs at full rate, and continues until it is killed. It respects no rate limit: it ignores refusals.

import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type Attack = {
  baseUrl: string
  /** Of one team. Rates count by key, so an attacker uses several. */
  keys: string[]
  image: string
}

const IDLE_CONNECTIONS = 3500
const RECONNECT_MS = 1000
const LOG_READERS = 10
const HELD_EXECS = 150
const STALLED_PULLS = 16
const BUSY_UNITS = 4
const ARGUMENTS = 60
const ARGUMENT_BYTES = 32_000

let calls = 0

const attack = JSON.parse(process.env['ATTACK'] ?? '{}') as Attack

/** Each resolves when it is in full swing; what it began goes on. The first is no attack: it uses what units are for. */
const attacks: Record<string, () => Promise<void>> = {
  'busy units': computeInUnits,
  'fill the disk': fillDisk,
  'silent connections': holdConnections,
  'read logs of the future': readLogs,
  'stalled pulls': stallPulls,
  'deep layers': unpackDeepLayers,
  'print to the log': printToLog,
  'hold output': holdOutput,
  'long arguments': sendLongArguments,
}

const [name = ''] = process.argv.slice(2)
const begin = attacks[name]
if (begin === undefined) throw new Error(`There is no attack "${name}".`)
// What is refused is the attacker's own matter.
process.on('unhandledRejection', () => {})
await begin()
console.log('begun')

async function computeInUnits(): Promise<void> {
  for (let unit = 0; unit < BUSY_UNITS; unit += 1)
    await createUnit({ cmd: ['sh', '-c', 'while :; do :; done'] })
  await delay(3000)
}

async function fillDisk(): Promise<void> {
  const volume = { mount: '/data', gb: 500 }
  const id =
    (await createUnit({ volume })) ??
    (await createUnit({ volume: { mount: '/data', gb: 50 } })) ??
    (await createUnit({}))
  const fill = `while :; do
    for n in $(seq 200); do fallocate -l 1G "/data/$n" 2>/dev/null || dd if=/dev/urandom of="/data/$n" bs=1M count=512 2>/dev/null || break; done
    rm -f /data/*
  done`
  void forever(() => exec(id, ['sh', '-c', `mkdir -p /data; ${fill}`]))
  await delay(5000)
}

async function holdConnections(): Promise<void> {
  const { hostname, port } = new URL(attack.baseUrl)
  const hold = async () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    // Half of a request, so that the server has begun to read one.
    socket.write('GET /v1/units HTTP/1.1\r\nhost: ')
    await once(socket, 'close')
    await delay(RECONNECT_MS)
  }
  for (let opened = 0; opened < IDLE_CONNECTIONS; opened += 1) {
    void forever(hold)
    if (opened % 100 === 0) await delay(20)
  }
}

async function readLogs(): Promise<void> {
  const id = await createUnit({
    cmd: ['sh', '-c', 'yes "a line of a log, and another one" | head -c 200M; sleep 3600'],
  })
  await delay(15_000)
  for (let reader = 0; reader < LOG_READERS; reader += 1) {
    void forever(() => request('GET', `/v1/units/${id}/logs?since=2099-01-01T00:00:00Z`))
  }
}

async function stallPulls(): Promise<void> {
  let n = 0
  for (let puller = 0; puller < STALLED_PULLS; puller += 1) {
    void forever(() => createUnit({ image: `docker.io/stalled/image-${n++}:1` }))
  }
  await delay(3000)
}

async function unpackDeepLayers(): Promise<void> {
  let n = 0
  for (let puller = 0; puller < STALLED_PULLS; puller += 1) {
    void forever(() => createUnit({ image: `docker.io/deep/image-${n++}:1` }))
  }
  await delay(3000)
}

async function printToLog(): Promise<void> {
  for (let printer = 0; printer < BUSY_UNITS; printer += 1) {
    await createUnit({ cmd: ['sh', '-c', 'exec yes "a line that is printed as fast as it can be printed"'] })
  }
  await delay(3000)
}

async function holdOutput(): Promise<void> {
  const id = await createUnit({})
  const script = 'head -c 8M /dev/zero | tr "\\0" x; sleep 60'
  for (let held = 0; held < HELD_EXECS; held += 1) void forever(() => exec(id, ['sh', '-c', script]))
  await delay(5000)
}

async function sendLongArguments(): Promise<void> {
  const cmd = Array.from({ length: ARGUMENTS }, () => `-p${'-'.repeat(ARGUMENT_BYTES)}`)
  for (let caller = 0; caller < 4; caller += 1) void forever(() => exec('unit_that_does_not_exist', cmd))
  await delay(1000)
}

/** Returns the unit's id, or null where the call was refused. */
async function createUnit(spec: object): Promise<string | null> {
  const unit = { name: 'attacker', image: attack.image, cmd: ['sleep', 'infinity'], ...spec }
  const answer = await request('POST', '/v1/units', { spec: unit })
  return (answer as { units?: { id: string }[] } | null)?.units?.[0]?.id ?? null
}

async function exec(id: string | null, cmd: string[]): Promise<unknown> {
  return await request('POST', `/v1/units/${id}/exec`, { cmd, timeoutMs: 120_000 })
}

async function forever(action: () => Promise<unknown>): Promise<never> {
  while (true) {
    await action().catch(() => {})
    await delay(20)
  }
}

/** Returns the answer's body, or null for one that is no JSON. */
async function request(method: string, path: string, body?: object): Promise<unknown> {
  const key = attack.keys[calls++ % attack.keys.length]
  const answer = await fetch(attack.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await answer.text()
  return answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : null
}
