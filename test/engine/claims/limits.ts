import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

export function limitClaims(suite: Suite): void {
  const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
  /** Takes memory until something stops it. */
  const eatMemory = 'my @held; while (1) { push @held, "x" x (16 * 1024 * 1024); }'

  test('a first process over its memory is killed, and that is said', async () => {
    const ref = await suite.running({ entrypoint: ['perl', '-e', eatMemory], cmd: [] }, { size })
    expect(await suite.exitOf(ref, 60_000)).toMatchObject({ code: 137, oomKilled: true })
  })

  test('a command over the memory fails, and other machines do not notice', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size })
    const result = await suite.exec(ref, ['perl', '-e', eatMemory], { timeoutMs: 60_000 })
    expect(result.exitCode).not.toBe(0)
    expect(await suite.sh(neighbour, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
  })

  test('a fork bomb stays within its machine', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size })
    const bomb = 'for i in $(seq 1 2000); do sleep 30 & done; echo made'
    const result = await suite.exec(ref, ['bash', '-c', bomb], { timeoutMs: 15_000 })
    expect(`${result.stderr}${result.exitCode}${result.timedOut}`).not.toBe('0false')
    expect(await suite.sh(neighbour, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
    await suite.engine().destroy(ref.id)
    expect(await suite.status(ref.id)).toBeUndefined()
  })

  test('a full disk is an error inside, and the machine goes on', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size, volume: { mount: '/data', gb: 1 } })
    for (const directory of ['/root', '/data']) {
      const fill = `head -c 1200M /dev/zero > ${directory}/full; sync; echo ended`
      const result = await suite.sh(ref, fill, { timeoutMs: 60_000 })
      expect(result.stderr).toMatch(/quota|No space/i)
      expect(await suite.sh(ref, `rm -f ${directory}/full; echo going on`)).toMatchObject({
        stdout: 'going on\n',
      })
    }
    expect(await suite.sh(neighbour, 'echo fine > /root/file; cat /root/file')).toMatchObject({
      stdout: 'fine\n',
    })
  })

  test('the cpu is what the size says', async () => {
    const ref = await suite.running({}, { size: { ...size, cpus: 0.25 } })
    // Half a second of work takes two with a quarter of a processor.
    const spin = 'my $t = (times)[0]; 1 while (times)[0] - $t < 0.5;'
    const started = performance.now()
    await suite.exec(ref, ['perl', '-e', spin])
    expect(performance.now() - started).toBeGreaterThan(1200)
  })
}
