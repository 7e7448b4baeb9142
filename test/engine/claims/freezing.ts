import { expect, test } from 'vitest'
import type { MachineRef } from '../../../src/engine/engine.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

const pause = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms))

/** Answers each line of a connection with how many lines it has had in all. */
const counter = [
  'use IO::Socket::INET;',
  'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die;',
  '$| = 1; print "listening\\n"; my $n = 0;',
  'while (my $c = $s->accept) { $c->autoflush(1); while (<$c>) { $n++; print $c "$n\\n" } close $c }',
].join(' ')

/** Asks the counter four times over one connection; says when it has its first answer. */
const asking = (address: string) =>
  [
    'use IO::Socket::INET; $| = 1;',
    `my $c = IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => 8080) or die; $c->autoflush(1);`,
    'for (1..4) { print $c "next\\n"; my $n = <$c>; print $n; sleep 1 if $_ == 1 }',
  ].join(' ')

export function freezingClaims(suite: Suite): void {
  const engine = suite.engine
  const write = async (ref: MachineRef) => await engine().writeFile(ref, '/root/written', Buffer.from('x'))

  /** A command whose first output tells that it has begun. */
  function begin(ref: MachineRef, script: string, timeoutMs = 20_000) {
    const begun = Promise.withResolvers<void>()
    let stdout = ''
    const argv = ['sh', '-c', script]
    const exit = engine().exec(ref, { argv, stdin: null, timeoutMs }, ({ data }) => {
      stdout += data.toString()
      begun.resolve()
    })
    return { begun: begun.promise, result: exit.then((end) => ({ ...end, stdout })) }
  }

  test('a frozen machine refuses commands and file access and continues when thawed', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'echo kept > /root/kept')
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: false })
    await engine().freeze(ref)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: true, exit: null })
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('frozen')
    expect(await kindOf(write(ref))).toBe('frozen')
    expect(await kindOf(engine().readFile(ref, '/root/kept', 100))).toBe('frozen')
    await engine().thaw(ref)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: false })
    expect((await suite.sh(ref, 'cat /root/kept')).stdout).toBe('kept\n')
    expect((await write(ref)).verified).toBe(true)
  })

  test('freeze and thaw can be repeated without effect', async () => {
    const ref = await suite.running()
    await engine().thaw(ref)
    for (const frozen of [true, false]) {
      for (const _twice of [1, 2]) await (frozen ? engine().freeze(ref) : engine().thaw(ref))
      expect(await suite.status(ref.id)).toMatchObject({ generation: 1, state: 'running', frozen })
    }
    await Promise.all([engine().freeze(ref), engine().thaw(ref), engine().freeze(ref), engine().thaw(ref)])
    expect(await suite.sh(ref, 'echo up')).toMatchObject({ stdout: 'up\n' })
  })

  test('a command started before a freeze is frozen and continues after the thaw', async () => {
    const ref = await suite.running()
    let ended = false
    const command = begin(ref, 'echo begun; sleep 0.5; echo done')
    void command.result.finally(() => (ended = true))
    await command.begun
    await engine().freeze(ref)
    await pause(1000)
    expect(ended).toBe(false)
    await engine().thaw(ref)
    expect(await command.result).toEqual({ exitCode: 0, timedOut: false, stdout: 'begun\ndone\n' })
  })

  test('concurrent commands run or fail with frozen while a machine is repeatedly frozen and thawed', async () => {
    const ref = await suite.running()
    const commands = Array.from({ length: 20 }, async (_, i) => {
      await pause(i * 20)
      const { exitCode, stdout } = await suite.sh(ref, `echo ${i}`)
      return exitCode === 0 && stdout === `${i}\n` ? 'run' : `${exitCode} ${stdout}`
    })
    const outcomes = Promise.allSettled(commands)
    for (let round = 0; round < 5; round += 1) {
      await engine().freeze(ref)
      await pause(30)
      await engine().thaw(ref)
      await pause(50)
    }
    for (const outcome of await outcomes) {
      const said =
        outcome.status === 'fulfilled' ? outcome.value : await kindOf(Promise.reject(outcome.reason))
      expect(['run', 'frozen']).toContain(said)
    }
    expect(await suite.sh(ref, 'echo up')).toMatchObject({ stdout: 'up\n' })
  })

  test('a command whose timeout passes while frozen returns then and is killed after the thaw', async () => {
    const ref = await suite.running()
    const command = begin(ref, 'echo begun; sleep 876', 1000)
    await command.begun
    await engine().freeze(ref)
    expect(await command.result).toMatchObject({ timedOut: true, stdout: 'begun\n' })
    expect(await suite.status(ref.id)).toMatchObject({ frozen: true })
    await engine().thaw(ref)
    if (suite.options.small) return
    await eventually(async () => {
      const { stdout } = await suite.sh(ref, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')
      return stdout.includes('sleep 876') ? null : true
    })
  })

  test('stop, destroy and a newer start work on a frozen machine', async () => {
    for (const graceMs of [0, 1000]) {
      const stopped = await suite.running()
      await engine().freeze(stopped)
      await engine().stop(stopped, graceMs)
      expect(await suite.status(stopped.id)).toMatchObject({ state: 'exited', frozen: false })
      const again = await suite.start({ id: stopped.id, generation: 2 })
      expect(await suite.sh(again, 'echo up')).toMatchObject({ stdout: 'up\n' })
    }
    const restarted = await suite.running()
    await engine().freeze(restarted)
    const newer = await suite.start({ id: restarted.id, generation: 2 })
    expect(await suite.status(newer.id)).toMatchObject({ generation: 2, state: 'running', frozen: false })
    expect(await suite.sh(newer, 'echo newer')).toMatchObject({ stdout: 'newer\n' })

    const destroyed = await suite.running()
    await engine().freeze(destroyed)
    await engine().destroy(destroyed.id)
    expect(await suite.status(destroyed.id)).toBeUndefined()
  })

  test('a machine that is not running cannot be frozen or thawed, nor can an earlier run', async () => {
    const nobody = { id: 'unit_nobody', generation: 1 }
    const created = { id: (await suite.create()).id, generation: 1 }
    const ended = await suite.running({ cmd: ['sh', '-c', 'exit 3'] })
    await suite.exitOf(ended)
    const stale = await suite.running()
    await suite.start({ id: stale.id, generation: 2 })
    for (const verb of ['freeze', 'thaw'] as const) {
      expect(await kindOf(engine()[verb](nobody))).toBe('unknown_machine')
      for (const ref of [created, ended, stale]) expect(await kindOf(engine()[verb](ref))).toBe('not_running')
    }
    expect(await suite.status(stale.id)).toMatchObject({ generation: 2, state: 'running', frozen: false })
  })

  test('the reported capacity of the host is plausible', async () => {
    const { cpus, memoryMb, availableMemoryMb } = await engine().capacity()
    expect(cpus).toBeGreaterThanOrEqual(1)
    expect(availableMemoryMb).toBeGreaterThan(0)
    expect(memoryMb).toBeGreaterThanOrEqual(availableMemoryMb)
  })

  const withProcesses = test.skipIf(suite.options.small)

  withProcesses('a frozen machine uses no CPU time', async () => {
    const busy = 'while :; do :; done'
    const ref = await suite.running({ entrypoint: ['bash', '-c', `(${busy}) & ${busy}`], cmd: [] })
    void suite.sh(ref, busy, { timeoutMs: 60_000 }).catch(() => undefined)
    const runs = async () => {
      const before = suite.cpuNs(ref)
      await expect.poll(() => suite.cpuNs(ref) - before, { timeout: 30_000 }).toBeGreaterThan(50_000_000)
    }
    await runs()
    await engine().freeze(ref)
    const before = suite.cpuNs(ref)
    await pause(1000)
    expect(suite.cpuNs(ref) - before).toBe(0)
    await engine().thaw(ref)
    await runs()
  })

  withProcesses('memory and open connections survive a freeze', async () => {
    const ref = await suite.running({ entrypoint: ['perl', '-e', counter], cmd: [] })
    const sibling = await suite.running()
    await suite.logged(ref.id, 1)
    const address = (await suite.status(ref.id))?.address ?? ''
    let ended = false
    const answers = suite.exec(sibling, ['perl', '-e', asking(address)]).finally(() => (ended = true))
    await pause(600)
    await engine().freeze(ref)
    await pause(2500)
    expect(ended).toBe(false)
    await engine().thaw(ref)
    expect(await answers).toMatchObject({ exitCode: 0, stdout: '1\n2\n3\n4\n' })
  })

  withProcesses('a stop of a frozen machine lets its first process handle SIGTERM', async () => {
    const polite = 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'
    const ref = await suite.running({ entrypoint: ['bash', '-c', polite], cmd: [] })
    await suite.logged(ref.id, 1)
    await engine().freeze(ref)
    await engine().stop(ref, 10_000)
    expect(await suite.exitOf(ref)).toMatchObject({ code: 7, oomKilled: false })
    expect((await suite.logged(ref.id, 2)).at(-1)?.text).toBe('bye')
  })
}
