// Code in units of berth.local/code: create and first run beside create and first command, of machines that stand ready, and later
// runs beside what the interpreter takes for them, as a program in the unit measures it.

import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from './berth.ts'
import { type Figures, timed } from './figures.ts'

/** Until another machine stands ready, its kernel begun. */
const READY_WITHIN_MS = 15_000
const LATER = 10
const TURNS = 6

/** A sandbox that was idle answers later: what a call takes outside of the unit, between two runs. */
const BETWEEN_S = 0.01

/** Asks as the service does, in the unit itself and as often, and prints how long each answer took. */
const OWN = `
import json, socket, time
for _ in range(${LATER}):
    began = time.perf_counter()
    ends = socket.socket(socket.AF_UNIX)
    ends.connect('/run/berth-code/socket')
    ends.sendall(json.dumps({'op': 'run', 'code': '1+1', 'timeoutMs': 60000}).encode() + b'\\n')
    for line in ends.makefile():
        if json.loads(line)['type'] == 'end':
            break
    print((time.perf_counter() - began) * 1000)
    ends.close()
    time.sleep(${BETWEEN_S})
`

export async function measureCode(call: Call, rounds: number): Promise<Figures> {
  const create = async () => {
    const spec = { name: 'bench', image: 'berth.local/code:1', size: 'medium' }
    const { units } = (await call('POST', '/v1/units', { spec, waitTimeoutMs: 300_000 })) as {
      units: { id: string; state: string }[]
    }
    const [unit = { id: '', state: '' }] = units
    // The first one may build the image.
    for (let { state } = unit; state !== 'running'; await delay(1000))
      ({ state } = (await call('GET', `/v1/units/${unit.id}`)) as { state: string })
    return unit.id
  }
  const destroy = async (id: string) => await call('DELETE', `/v1/units/${id}`)
  const run = async (id: string) =>
    await call('POST', `/v1/units/${id}/code`, { code: '1+1', timeoutMs: 120_000 })
  const exec = async (id: string, cmd = ['echo', 'hello']) =>
    (await call('POST', `/v1/units/${id}/exec`, { cmd })) as { stdout: string }
  const figures = {
    'create to first command answered, code image': [] as number[],
    'create to first code answered': [] as number[],
    'later code': [] as number[],
    'later code, in the unit alone': [] as number[],
  }
  const first = await create()
  await run(first)
  await destroy(first)
  for (let round = 0; round < rounds; round += 1) {
    await delay(READY_WITHIN_MS)
    await destroy(
      await timed(figures['create to first command answered, code image'], async () => {
        const id = await create()
        await exec(id)
        return id
      }),
    )
    await delay(READY_WITHIN_MS)
    const id = await timed(figures['create to first code answered'], async () => {
      const made = await create()
      await run(made)
      return made
    })
    // What stands ready is made again first: this is what a call takes, and not what that takes from it.
    await delay(READY_WITHIN_MS)
    // In turn, since each run in a sandbox is quicker than the one before.
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (let again = 0; again < LATER; again += 1)
        await timed(figures['later code'], async () => await run(id))
      const own = (await exec(id, ['python3', '-c', OWN])).stdout.trim().split('\n').map(Number)
      figures['later code, in the unit alone'].push(...own)
    }
    await destroy(id)
  }
  return figures
}
