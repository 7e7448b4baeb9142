// Commands that a process made ahead becomes (decision 0136), beside commands that the runtime starts.

import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef } from '../../src/engine/engine.ts'
import { listChildren, processesIn } from '../../src/engine/oci/kernel/cgroups.ts'
import { noReadyMachines } from '../../src/engine/oci/warm-pool/pool.ts'
import { hasCriu } from '../support/criu.ts'
import { deriveImage } from '../support/derived-images.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, createSuite, eventually } from './suite.ts'

let host: Awaited<ReturnType<typeof openHostEngine>>
const suite = createSuite(
  async () => ({
    engine: host.engine(),
    configuredImage: await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], {
      reference: 'berth.local/configured:1',
      config: configuredImage,
    }),
    reopen: host.reopen,
    close: host.close,
  }),
  { isolation: 'runc', image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)
beforeAll(async () => {
  // Processes are found by the name that a machine has whose runtime starts it with its create.
  host = await openHostEngine({ isolation: 'runc', readyMachines: noReadyMachines })
  await suite.open()
})
afterAll(async () => await suite.close())

/** The processes of a machine's commands and standbys, by their number on the host. */
function commandsOf({ id, generation }: MachineRef): number[] {
  const { container } = host.paths.run(id, generation)
  return listChildren(host.cgroups, container).flatMap((child) => processesIn(host.cgroups, container, child))
}

/** Resolves with the process that stands ready for the next command. */
async function standbyOf(ref: MachineRef): Promise<number> {
  return await eventually(async () => commandsOf(ref).find(isReady) ?? null)
}

/** Until then it is a process of the runtime. */
function isReady(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').endsWith('\0sh\0-s\0')
  } catch {
    return false
  }
}

const isGone = async (ref: MachineRef, pid: number) =>
  await eventually(async () => (commandsOf(ref).includes(pid) ? null : true))

/** Everything that a command can find out about how it was started, without what differs each time. */
const LOOK = `
echo "$0 $#"; env | sort; id; pwd; umask; cat
grep -E '^(Sig|Shd|Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups|Umask|Threads)' /proc/self/status | grep -v SigQ
cat /proc/self/limits /proc/self/oom_score_adj
for fd in /proc/self/fd/*; do echo "$fd $(readlink "$fd" | sed 's/[0-9]*//g')"; done
for ns in pid net mnt ipc uts cgroup; do readlink /proc/self/ns/$ns; done
read -r line </proc/$$/stat; set -- $line
[ "$1" = "$5" ] && [ "$1" = "$6" ]; echo "leads $? on terminal $7"`

describe.each([
  ['root of a plain image', () => suite.imageDigest(), {}],
  [
    'the user and the directory of a configured image',
    () => suite.configuredImage(),
    { entrypoint: ['sleep'], cmd: ['infinity'] },
  ],
])('a command that a standby becomes, as %s', (_, imageDigest, run) => {
  it.each([
    ['with an input', { stdin: 'some input\n' }],
    ['without an input', {}],
    [
      'with a directory and variables',
      { cwd: '/usr/lib', env: { HOME: '/elsewhere', EXTRA: "it's\n$HOME" } },
    ],
  ])('sees what a command sees that the runtime starts, %s', async (_name, given) => {
    const ref = await suite.running({ env: { TOLD: 'yes' }, ...run }, { imageDigest: imageDigest() })
    const byRuntime = await suite.exec(ref, ['sh', '-c', LOOK, 'name', 'argument'], given)
    const standby = await standbyOf(ref)
    const byStandby = await suite.exec(ref, ['sh', '-c', LOOK, 'name', 'argument'], given)
    expect(byStandby).toEqual(byRuntime)
    expect(byRuntime).toMatchObject({ exitCode: 0, stderr: '' })
    await isGone(ref, standby)
  })
})

describe('a standby', () => {
  it('is used for one command alone, and the next command has another', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    const seen = new Set<number>()
    for (let round = 0; round < 3; round += 1) {
      const pid = await standbyOf(ref)
      seen.add(pid)
      expect((await suite.sh(ref, `echo ${round}`)).stdout).toBe(`${round}\n`)
      await isGone(ref, pid)
    }
    expect(seen.size).toBe(3)
  })

  it('is not missed when its unit kills it: the runtime starts the next command', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    process.kill(pid, 'SIGKILL')
    await isGone(ref, pid)
    expect(await suite.sh(ref, 'echo fine')).toMatchObject({ exitCode: 0, stdout: 'fine\n' })
  })

  it('is killed at the deadline of its command when its unit has stopped it, and delays no other machine', async () => {
    const [ref, other] = [await suite.running(), await suite.running()]
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    process.kill(pid, 'SIGSTOP')
    const held = suite.sh(ref, 'echo never', { timeoutMs: 2000 })
    expect((await suite.sh(other, 'echo meanwhile')).stdout).toBe('meanwhile\n')
    expect(await held).toMatchObject({ timedOut: true, stdout: '' })
    await isGone(ref, pid)
  })

  it('becomes a command that is killed with its children at its deadline', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    const { timedOut } = await suite.sh(ref, 'setsid sleep 1000 & sleep 1000', { timeoutMs: 1000 })
    expect(timedOut).toBe(true)
    await isGone(ref, pid)
    expect((await suite.sh(ref, "grep -l -a '^sleep.1000' /proc/[0-9]*/cmdline")).stdout).toBe('')
  })

  it('is frozen with its machine, and becomes a command after the thaw', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    await suite.engine().freeze(ref)
    await suite.engine().thaw(ref)
    expect((await suite.sh(ref, 'echo thawed')).stdout).toBe('thawed\n')
    await isGone(ref, pid)
  })

  it.skipIf(!hasCriu)(
    'that is being made when its machine is frozen does not cost the machine its memory',
    async () => {
      for (let round = 0; round < 5; round += 1) {
        const ref = await suite.running()
        await suite.sh(ref, 'echo kept > /dev/shm/memory')
        // The runtime is in the machine's group, and the standby is not made yet.
        while (commandsOf(ref).length === 0) await setImmediate()
        await suite.engine().freeze(ref)
        // What is frozen is the standby, not the runtime.
        expect(commandsOf(ref).map(isReady)).toEqual([true])
        expect(await suite.engine().suspend(ref, 0)).toBe(true)
        const next = { ...ref, generation: ref.generation + 1 }
        await suite.start(next)
        expect((await suite.sh(next, 'cat /dev/shm/memory')).stdout).toBe('kept\n')
      }
    },
  )

  it('gives each of thirty commands at once its own input and output', async () => {
    const ref = await suite.running()
    const numbers = Array.from({ length: 30 }, (_, number) => `${number}`)
    const answers = await Promise.all(numbers.map((number) => suite.exec(ref, ['cat'], { stdin: number })))
    expect(answers.map(({ stdout }) => stdout)).toEqual(numbers)
  })

  it('is ended by the next engine, which makes others', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    await suite.reopen()
    await isGone(ref, pid)
    expect((await suite.sh(ref, 'echo adopted')).stdout).toBe('adopted\n')
    await standbyOf(ref)
  })

  it('ends with its machine, however that ends', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'trap "exit 3" TERM; while :; do sleep 0.1; done'] })
    await suite.sh(ref, 'true')
    const pid = await standbyOf(ref)
    await suite.engine().stop(ref, 5000)
    expect(await suite.exitOf(ref)).toMatchObject({ code: 3 })
    await isGone(ref, pid)
  })
})
