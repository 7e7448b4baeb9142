// A command ends with all its children and has few descriptors and rights (reliability I14).

import { expect, test } from 'vitest'
import { eventually, type Suite } from '../suite.ts'

/** Capabilities that would lead out of a machine, by their bit. */
const refused = {
  DAC_READ_SEARCH: 2,
  NET_ADMIN: 12,
  NET_RAW: 13,
  SYS_MODULE: 16,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  MKNOD: 27,
}

export function processClaims(suite: Suite): void {
  const machine = suite.shared()

  /** Whether a process that writes the time to `file` again and again is still doing so. */
  async function stillWrites(file: string): Promise<boolean> {
    const before = (await suite.sh(machine(), `cat ${file}`)).stdout
    await new Promise((resolve) => setTimeout(resolve, 500))
    return (await suite.sh(machine(), `cat ${file}`)).stdout !== before
  }
  const writer = (file: string) => `while :; do date +%s%N > ${file}; sleep 0.05; done`

  test('a timeout kills the whole process tree, including children in other sessions', async () => {
    const script = `(setsid sh -c '${writer('/tmp/daemon')}' >/dev/null 2>&1 &) ; (${writer('/tmp/child')}) & echo begun; wait`
    const result = await suite.exec(machine(), ['bash', '-c', script], { timeoutMs: 2000 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'begun\n' })
    expect(await stillWrites('/tmp/daemon')).toBe(false)
    expect(await stillWrites('/tmp/child')).toBe(false)
  })

  test('aborting a command kills its children', async () => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error('the caller left')), 1500)
    const script = `(setsid sh -c '${writer('/tmp/orphan')}' >/dev/null 2>&1 &) ; sleep 60`
    await suite.exec(machine(), ['bash', '-c', script], { signal: abort.signal }).catch(() => undefined)
    await eventually(async () => ((await stillWrites('/tmp/orphan')) ? null : true), 5000)
  })

  test('a timeout does not affect other processes of the machine', async () => {
    const other = suite.sh(machine(), 'sleep 2; echo unharmed')
    await suite.sh(machine(), 'sleep 60', { timeoutMs: 500 })
    expect((await other).stdout).toBe('unharmed\n')
  })

  test('a command returns even if a child keeps its output open', async () => {
    const result = await suite.sh(machine(), 'sleep 1234 & echo answered', { timeoutMs: 900_000 })
    expect(result).toMatchObject({ exitCode: 0, timedOut: false, stdout: 'answered\n' })
    // It was not waited for: it is still there.
    expect((await suite.sh(machine(), 'cat /proc/[0-9]*/cmdline')).stdout).toContain('sleep\x001234\0')
  })

  test('a background child of a finished command keeps running', async () => {
    await suite.sh(machine(), `setsid sh -c '${writer('/tmp/service')}' >/dev/null 2>&1 &`)
    await eventually(async () => ((await stillWrites('/tmp/service')) ? true : null), 5000)
  })

  test('a command killed by a signal exits with 128 plus the signal number', async () => {
    expect((await suite.sh(machine(), 'kill -9 $$')).exitCode).toBe(137)
    expect((await suite.sh(machine(), 'kill -TERM $$')).exitCode).toBe(143)
  })

  test('a command has three descriptors, no terminal and no way to gain privileges', async () => {
    // Into a file: of a pipe the shell may still have its ends while they are listed.
    const script =
      'ls /proc/$$/fd >/tmp/descriptors; sort -n /tmp/descriptors | head -3; wc -l </tmp/descriptors'
    const { stdout } = await suite.sh(machine(), script)
    const lines = stdout.trim().split('\n')
    expect(lines.slice(0, 3)).toEqual(['0', '1', '2'])
    // A shell may hold one for its script.
    expect(Number(lines[3])).toBeLessThanOrEqual(4)
    const status = (await suite.sh(machine(), 'grep -E "NoNewPrivs|CapEff|CapBnd" /proc/self/status')).stdout
    // gVisor does not show it.
    expect(status).not.toMatch(/NoNewPrivs:\s+0/)
    for (const [, mask = ''] of status.matchAll(/Cap(?:Eff|Bnd):\s+([0-9a-f]+)/g)) {
      for (const [name, bit] of Object.entries(refused)) {
        expect([name, (BigInt(`0x${mask}`) >> BigInt(bit)) & 1n]).toEqual([name, 0n])
      }
    }
    expect(status).toMatch(/CapEff/)
  })

  test('a stop sends SIGTERM and kills everything after the grace period', async () => {
    const polite = await suite.running({
      entrypoint: ['bash', '-c', 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'],
      cmd: [],
    })
    await suite.logged(polite.id, 1)
    await suite.engine().stop(polite, 10_000)
    expect(await suite.exitOf(polite)).toMatchObject({ code: 7 })
    expect((await suite.logged(polite.id, 2)).at(-1)?.text).toBe('bye')

    const stubborn = await suite.running({
      entrypoint: ['bash', '-c', 'trap "" TERM; echo up; while :; do sleep 0.1; done'],
      cmd: [],
    })
    await suite.logged(stubborn.id, 1)
    await suite.engine().stop(stubborn, 1000)
    expect(await suite.exitOf(stubborn)).toMatchObject({ code: 137, oomKilled: false })
  })

  test('all processes of a run end with its first process', async () => {
    const ref = await suite.running({
      entrypoint: ['bash', '-c', 'setsid sleep 1000 & sleep 1; exit 0'],
      cmd: [],
    })
    expect(await suite.exitOf(ref)).toMatchObject({ code: 0 })
    const again = await suite.start({ id: ref.id, generation: 2 })
    const processes = await suite.sh(again, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')
    expect(processes.stdout).not.toContain('sleep 1000')
  })
}
