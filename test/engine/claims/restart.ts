import { expect, test } from 'vitest'
import { eventually, kindOf, type Suite } from '../suite.ts'

export function restartClaims(suite: Suite): void {
  test('a new engine adopts running machines with their commands, files, log and exit', async () => {
    const ref = await suite.running({
      entrypoint: ['bash', '-c', 'echo up; while [ ! -f /tmp/end ]; do sleep 0.1; done; echo done; exit 21'],
      cmd: [],
    })
    const stopped = await suite.running()
    await suite.engine().stop(stopped, 0)
    const created = await suite.create()
    const [first] = await suite.logged(ref.id, 1)
    const before = await suite.status(ref.id)

    await suite.reopen()
    expect(await suite.status(ref.id)).toEqual(before)
    expect(await suite.status(stopped.id)).toMatchObject({ state: 'exited' })
    expect(await suite.status(created.id)).toMatchObject({ state: 'created' })
    expect(await suite.sh(ref, 'echo adopted')).toMatchObject({ stdout: 'adopted\n' })
    await suite.engine().writeFile(ref, '/tmp/written', Buffer.from('by the new engine'))
    // What ends the machine may go down with it.
    await suite.sh(ref, 'test -f /tmp/written && : > /tmp/end')
    expect(await suite.exitOf(ref)).toMatchObject({ code: 21, oomKilled: false })
    const after = await eventually(async () => {
      const lines = await suite
        .engine()
        .logs(ref.id, { after: first?.cursor ?? null, since: null, limit: 10 })
      return lines.length > 0 ? lines : null
    })
    expect(after.map((line) => line.text)).toEqual(['done'])
    await suite.start({ id: stopped.id, generation: 2 })
  })

  test('the exit code of a run that ended while no engine was running is reported', async () => {
    const ref = await suite.running({ entrypoint: ['bash', '-c', 'sleep 0.5; exit 22'], cmd: [] })
    await suite.reopen()
    expect(await suite.exitOf(ref)).toMatchObject({ code: 22, oomKilled: false })
  })

  test('a new engine can destroy and restart machines that an earlier one created', async () => {
    const doomed = await suite.running()
    const kept = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    await suite.sh(kept, 'echo kept > /data/file')
    await suite.reopen()
    await suite.engine().destroy(doomed.id)
    expect(await suite.status(doomed.id)).toBeUndefined()
    await suite.engine().stop(kept, 0)
    const again = await suite.start({ id: kept.id, generation: 2 })
    expect(await suite.sh(again, 'cat /data/file')).toMatchObject({ stdout: 'kept\n' })
  })

  test('a new engine knows that a machine is frozen and can thaw it', async () => {
    const counting = 'i=0; while :; do i=$((i+1)); echo $i > /dev/shm/count; done'
    const ref = await suite.running({ entrypoint: ['bash', '-c', counting], cmd: [] })
    await suite.engine().freeze(ref)
    const used = suite.cpuNs(ref)
    await suite.reopen()
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: true })
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('frozen')
    expect(suite.cpuNs(ref)).toBe(used)
    await suite.engine().thaw(ref)
    // Empty for a moment each time it is written.
    const count = async () => Number((await suite.sh(ref, 'cat /dev/shm/count')).stdout) || null
    const first = await eventually(count)
    await eventually(async () => (Number(await count()) > first ? true : null))
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: false })
  })
}
