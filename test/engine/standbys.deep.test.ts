// Commands that a process made ahead becomes (decisions/commands.md), beside commands that the runtime starts.

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef } from '../../src/engine/engine.ts'
import { processesIn } from '../../src/engine/oci/kernel/cgroups.ts'
import { listChildren } from '../../src/engine/oci/kernel/cgroup-children.ts'
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

/** Resolves with the process that makes them. */
async function forkerOf(ref: MachineRef): Promise<number> {
  return await eventually(async () => commandsOf(ref).find(isForker) ?? null)
}

/** Until then it is a process of the runtime, or of the forker. */
function isReady(pid: number): boolean {
  return commandLineOf(pid) === '/run/berth/busybox\0sh\0-s\0'
}

function isForker(pid: number): boolean {
  return commandLineOf(pid) === '/run/berth/fork\0/run/berth/busybox\0sh\0-s\0'
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

const isGone = async (ref: MachineRef, pid: number) =>
  await eventually(async () => (commandsOf(ref).includes(pid) ? null : true))

/** Everything that a command can find out about how it was started, without what differs each time. */
const LOOK = `
echo "$0 $#"; env | sort; id; pwd; umask; cat
for fd in 0 1 2; do [ ! -p /proc/self/fd/$fd ] || stat -L -c '%u %g %a' /proc/self/fd/$fd; done
grep -E '^(Sig|Shd|Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups|Umask|Threads)' /proc/self/status | grep -v SigQ
cat /proc/self/limits /proc/self/oom_score_adj
for fd in /proc/self/fd/*; do echo "$fd $(readlink "$fd" | sed 's/[0-9]*//g')"; done
for ns in pid net mnt ipc uts cgroup; do readlink /proc/self/ns/$ns; done
read -r line </proc/$$/stat; set -- $line
echo "child of $4"; [ "$1" = "$5" ] && [ "$1" = "$6" ]; echo "leads $? on terminal $7"`

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

  it('is not missed when its unit kills it: the next command has another', async () => {
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
        // What is frozen is the standby and what makes it, not the runtime. One that has not begun its program looks as its maker.
        const stand = commandsOf(ref)
        expect(stand.map((pid) => isReady(pid) || isForker(pid))).toEqual([true, true])
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

describe('what makes standbys', () => {
  it('is started once by the runtime, and makes them for many commands, in a row and at once', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    await standbyOf(ref)
    const forker = await forkerOf(ref)
    for (let round = 0; round < 10; round += 1)
      await Promise.all(
        [1, 2, 3].map(async (code) => {
          expect((await suite.sh(ref, `exit ${code}`)).exitCode).toBe(code)
        }),
      )
    await standbyOf(ref)
    expect(commandsOf(ref).filter(isForker)).toEqual([forker])
  })

  it('is there for root and for the user, each with its own', async () => {
    const ref = await suite.running(
      { entrypoint: ['sleep'], cmd: ['infinity'] },
      { imageDigest: suite.configuredImage() },
    )
    await suite.sh(ref, 'true')
    await suite.engine().writeFile(ref, '/tmp/file', Buffer.from('content'))
    await eventually(async () => (commandsOf(ref).filter(isReady).length === 2 ? true : null))
    const users = commandsOf(ref).map(
      (pid) => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    )
    const mine = (await suite.sh(ref, 'id -u')).stdout.trim()
    expect(users.filter((user) => user === '0')).toHaveLength(2)
    expect(users.filter((user) => user === mine)).toHaveLength(2)
  })

  it('is not missed when its unit ends it, and there is another one', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    await standbyOf(ref)
    const forker = await forkerOf(ref)
    process.kill(forker, 'SIGKILL')
    await isGone(ref, forker)
    expect((await suite.sh(ref, 'echo first')).stdout).toBe('first\n')
    expect((await suite.sh(ref, 'echo second')).stdout).toBe('second\n')
    await standbyOf(ref)
    expect(await forkerOf(ref)).not.toBe(forker)
  })

  it('costs its unit no command when its unit has stopped it, and is ended', async () => {
    const [ref, other] = [await suite.running(), await suite.running()]
    await suite.sh(ref, 'true')
    await standbyOf(ref)
    const forker = await forkerOf(ref)
    process.kill(forker, 'SIGSTOP')
    const held = Promise.all([1, 2, 3].map(async (round) => (await suite.sh(ref, `echo ${round}`)).stdout))
    expect((await suite.sh(other, 'echo meanwhile')).stdout).toBe('meanwhile\n')
    expect(await held).toEqual(['1\n', '2\n', '3\n'])
    await isGone(ref, forker)
    expect((await suite.sh(ref, 'echo on')).stdout).toBe('on\n')
    await standbyOf(ref)
  })

  it('cannot be looked into by root of its unit, which has no power over it but to end it', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    await standbyOf(ref)
    const { stdout } = await suite.sh(
      ref,
      `for p in $(grep -l -a '^/run/berth/fork' /proc/[0-9]*/cmdline); do p=\${p%/cmdline}
         cat "$p/fd/3" 2>&1; head -c 1 "$p/mem" 2>&1; cat "$p/environ" 2>&1; done`,
    )
    expect(stdout.match(/Permission denied/g)).toHaveLength(3)
    expect(stdout.trim().split('\n')).toHaveLength(3)
  })

  it('leaves no process, group, file or descriptor after hundreds of commands', async () => {
    const ref = await suite.running()
    const { container, execs } = host.paths.run(ref.id, ref.generation)
    const left = async () => ({
      groups: listChildren(host.cgroups, container).length,
      processes: commandsOf(ref).length,
      files: (await readdir(execs)).length,
      descriptors: (await readdir('/proc/self/fd')).length,
    })
    const settled = async () => {
      await standbyOf(ref)
      return await eventually(async () => {
        const now = await left()
        return now.groups === 2 && now.processes === 2 ? now : null
      })
    }
    await suite.sh(ref, 'true')
    const before = await settled()
    for (let round = 0; round < 60; round += 1) {
      const answers = await Promise.all(
        ['a', 'b', 'c', 'd', 'e'].map(async (text) => await suite.exec(ref, ['cat'], { stdin: text })),
      )
      expect(answers.map(({ stdout }) => stdout).join('')).toBe('abcde')
    }
    expect(await settled()).toEqual(before)
  })

  it('is ended by the next engine, as its standby is', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'true')
    await standbyOf(ref)
    const forker = await forkerOf(ref)
    await suite.reopen()
    await isGone(ref, forker)
    expect((await suite.sh(ref, 'echo adopted')).stdout).toBe('adopted\n')
    await standbyOf(ref)
    expect(await forkerOf(ref)).not.toBe(forker)
  })
})
