// `npm run bench:output`: whether the answer of a command has all that it printed, for thousands of short ones that write
// to both streams and end at once, beside busy loops on every processor. Ends with 1 if anything is missing.

import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { actionsOf, clientOf } from './berth.ts'
import { startBerth } from './service.ts'

const { values: options } = parseArgs({
  options: {
    commands: { type: 'string', default: '10000' },
    'at-once': { type: 'string', default: '8' },
    classes: { type: 'string', default: 'runc,gvisor' },
    help: { type: 'boolean', default: false },
  },
})

const SCRIPT = 'echo "out $0"; echo "err $0" >&2; exit 7'
const SHOWN = 3

type Tally = { whole: number; wrong: string[] }

if (options.help) {
  console.log(
    'npm run bench:output -- [--commands 10000] [--at-once 8] [--classes runc,gvisor]\n\nRuns short commands beside busy loops and counts the answers that lack something.',
  )
} else {
  for (const isolation of options.classes.split(',')) await tryClass(isolation)
}

async function tryClass(isolation: string): Promise<void> {
  const berth = await startBerth(isolation, {})
  const loops = busyLoops()
  try {
    const call = clientOf(berth)
    const { create, destroy } = actionsOf(call)
    const id = await create()
    const tally: Tally = { whole: 0, wrong: [] }
    const start = performance.now()
    let next = 0
    const work = async () => {
      while (next < Number(options.commands)) {
        next += 1
        await tryOne(tally, String(next), (body) => call('POST', `/v1/units/${id}/exec`, body))
      }
    }
    await Promise.all(Array.from({ length: Number(options['at-once']) }, work))
    const seconds = Math.round((performance.now() - start) / 1000)
    console.log(`${isolation}: ${tally.whole} of ${options.commands} whole, in ${seconds} s`)
    for (const answer of tally.wrong.slice(0, SHOWN)) console.log(`  ${answer}`)
    if (tally.wrong.length > 0) process.exitCode = 1
    await destroy(id)
  } finally {
    for (const loop of loops) loop.kill('SIGKILL')
    await berth.stop()
  }
}

async function tryOne(tally: Tally, name: string, exec: (body: object) => Promise<unknown>): Promise<void> {
  const expected = { exitCode: 7, stdout: `out ${name}\n`, stderr: `err ${name}\n` }
  try {
    const { exitCode, stdout, stderr } = (await exec({ cmd: ['sh', '-c', SCRIPT, name] })) as typeof expected
    const answer = JSON.stringify({ exitCode, stdout, stderr })
    if (answer === JSON.stringify(expected)) tally.whole += 1
    else tally.wrong.push(answer)
  } catch (error) {
    tally.wrong.push(String(error))
  }
}

function busyLoops(): ChildProcess[] {
  return Array.from({ length: availableParallelism() }, () => spawn('sh', ['-c', 'while :; do :; done']))
}
