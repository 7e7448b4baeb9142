// A web unit that keeps a pooled connection to a database unit. Callers ask the web unit to store a word; the
// database falls asleep during that again and again, and both are killed. A word that was acknowledged must be there
// in the end.

import { setTimeout as delay } from 'node:timers/promises'
import type { Exec } from '../support/berth-units.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Random } from '../simulation/random.ts'
import { ask, start, type World } from './world.ts'

/** Appends each line to its volume, syncs it, and acknowledges it. */
const DATABASE = `
import os, signal, socketserver, threading
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
turn = threading.Lock()
log = open("/data/log", "ab")
class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with turn:
                log.write(line)
                log.flush()
                os.fsync(log.fileno())
            self.wfile.write(b"kept " + line)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("", 7000), Client).serve_forever()
`

/** Passes each line on through the one connection it keeps, and makes another when that one is broken. */
const WEB = `
import os, signal, socket, socketserver, threading
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
turn, pooled = threading.Lock(), None
def keep(line):
    global pooled
    if pooled is None:
        pooled = socket.create_connection((os.environ["DATABASE"], 7000), timeout=10).makefile("rwb")
    pooled.write(line)
    pooled.flush()
    return pooled.readline() or b"closed\\n"
class Client(socketserver.StreamRequestHandler):
    def handle(self):
        global pooled
        for line in self.rfile:
            with turn:
                try:
                    answer = keep(line)
                except OSError as error:
                    answer = b"failed: %s\\n" % str(error).encode()
                if not answer.startswith(b"kept "):
                    pooled = None
            self.wfile.write(answer)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("127.0.0.1", 8000), Client).serve_forever()
`

const ASK_WEB =
  'exec 3<>/dev/tcp/127.0.0.1/8000 && echo "$0" >&3 && read -r -t 60 answer <&3 && echo "$answer"'
const SLEEP_EVERY = 6
const PAUSE_MS = 200

export type Pair = {
  run: () => Promise<void>
  verify: () => Promise<void>
}

export function createPair(world: World, stack: string, random: Random): Pair {
  const { journal } = world
  const ids = { db: '', web: '' }
  const kept: string[] = []

  const make = async (name: 'db' | 'web', program: string, extra: Record<string, unknown>) => {
    const cmd = ['python3', '-c', program]
    const spec = { name, image: 'berth.local/python:3.11', size: 'small', cmd, ...extra }
    const headers = { 'idempotency-key': `${stack}-${name}` }
    const created = await ask<RunResult>(
      world,
      'create',
      { method: 'POST', path: '/v1/units', body: { spec, stack }, headers },
      [201],
    )
    ids[name] = created?.body.units[0]?.id ?? ''
  }

  /** Resolves to true once the web unit has acknowledged the word. */
  const keep = async (word: string): Promise<boolean> => {
    const since = Date.now()
    const path = `/v1/units/${ids.web}/exec`
    const body = { cmd: ['bash', '-c', ASK_WEB, word], timeoutMs: 70_000 }
    const asked = await ask<Exec>(world, 'ask web', { method: 'POST', path, body }, [200, 409])
    if (asked?.body.stdout?.trim() === `kept ${word}`) {
      journal.done('keep a word', Date.now() - since)
      return true
    }
    return false
  }

  return {
    run: async () => {
      await make('db', DATABASE, { volume: { mount: '/data', gb: 1 } })
      await make('web', WEB, { env: { DATABASE: '{{unit:db}}' } })
      // A create that did not get through is a fault already, and there is no unit to call.
      if (ids.db === '' || ids.web === '') return
      for (let count = 1; !world.over.aborted; count++) {
        const word = `${stack}-${count}-${random.below(1_000_000)}`
        // A unit that was killed has exited, and only a start runs it again: packets do not.
        while (!(await keep(word)) && !world.over.aborted) {
          for (const id of [ids.db, ids.web]) await start(world, id)
          await delay(PAUSE_MS)
        }
        kept.push(...(world.over.aborted ? [] : [word]))
        if (count % SLEEP_EVERY === 0) await sleep(world, ids.db)
      }
    },

    verify: async () => {
      if (ids.db === '') return
      const call = { method: 'POST', path: `/v1/units/${ids.db}/exec`, body: { cmd: ['cat', '/data/log'] } }
      await start(world, ids.db)
      const read = await ask<Exec>(world, 'read log', call)
      const there = new Set(read?.body.stdout.split('\n'))
      const lost = kept.filter((word) => !there.has(word))
      if (lost.length > 0)
        journal.fault(
          `${lost.length} of ${kept.length} words of ${stack} are lost: ${lost.slice(0, 5).join()}`,
        )
    },
  }
}

/** Puts the unit to sleep, unless packets have just come or its process was killed, which is no fault. */
async function sleep(world: World, id: string): Promise<void> {
  const body = { sleep: '30m', now: true }
  await ask<{ units: Unit[] }>(
    world,
    'sleep now',
    { method: 'POST', path: `/v1/units/${id}/sleep`, body },
    [200, 409],
  )
}
