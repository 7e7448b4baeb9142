// Whatever is at a path, the call returns, and nothing outside the machine is touched (reliability S30, I12).

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'
import { isDeep } from '../../support/part-of.ts'

/** Each of them a read and a write while the path is swapped under them. */
const RACES = isDeep ? 16 : 4

export function hostileFileClaims(suite: Suite): void {
  const machine = suite.shared()
  const write = async (path: string) =>
    await suite.engine().writeFile(machine(), path, Buffer.from('written'))
  const read = async (path: string) => (await suite.engine().readFile(machine(), path, 1024 * 1024)).content

  /** The kind of error, or null when it worked. What holds an answer up lasts longer than any test. */
  async function outcome(work: Promise<unknown>): Promise<string | null> {
    return await work.then(
      () => null,
      (error: unknown) => (error instanceof Error && 'kind' in error ? String(error.kind) : String(error)),
    )
  }

  test('links are followed only within the machine', async () => {
    await suite.sh(machine(), 'echo inside > /root/target; ln -s /root/target /root/link')
    expect((await read('/root/link')).toString()).toBe('inside\n')
    await write('/root/link')
    expect((await suite.sh(machine(), 'cat /root/target')).stdout).toBe('written')
    // The host has no such machine: what is read is this one's own host name, whatever the link climbs.
    await suite.sh(machine(), 'ln -s ../../../../../../../../etc/hostname /root/climb')
    expect((await read('/root/climb')).toString()).toBe(
      (await suite.sh(machine(), 'cat /etc/hostname')).stdout,
    )
  })

  test('a circular link is refused', async () => {
    await suite.sh(machine(), 'ln -s /root/loop-b /root/loop-a; ln -s /root/loop-a /root/loop-b')
    expect(['file_refused', 'file_not_found', 'not_a_file']).toContain(await kindOf(read('/root/loop-a')))
    expect(await outcome(read('/root/loop-a/deeper'))).not.toBeNull()
    expect(await outcome(write('/root/loop-a/deeper'))).not.toBeNull()
  })

  test('a FIFO, a socket or a device does not block the call', async () => {
    await suite.sh(machine(), 'mkfifo /tmp/fifo')
    expect(await outcome(read('/tmp/fifo'))).toBe('not_a_file')
    expect(await outcome(write('/tmp/fifo'))).toBe('not_a_file')
    for (const path of ['/dev/stdin', '/dev/fd/0']) {
      expect(await outcome(read(path))).not.toBeNull()
      expect(await outcome(write(path))).not.toBeNull()
    }
    for (const device of ['/dev/zero', '/dev/full', '/dev/tty']) {
      expect([device, await outcome(read(device))]).not.toEqual([device, null])
      expect([device, await outcome(write(device))]).not.toEqual([device, null])
    }
  })

  test('kernel files are refused or read, and never changed', async () => {
    const pattern = (await suite.sh(machine(), 'cat /proc/sys/kernel/core_pattern 2>/dev/null')).stdout
    const paths = ['/proc/kmsg', '/proc/1/root/etc/hostname', '/proc/self/fd/9', '/proc/self/mem', '/dev/mem']
    const kernel = ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/kernel/uevent_helper']
    // Side by side: some are refused when their time is over.
    const reading = paths.map(async (path) => await outcome(read(path)))
    const written = await Promise.all(kernel.map(async (path) => [path, await outcome(write(path))]))
    await Promise.all(reading)
    for (const [path, refused] of written) expect([path, refused]).not.toEqual([path, null])
    expect((await suite.sh(machine(), 'cat /proc/sys/kernel/core_pattern 2>/dev/null')).stdout).toBe(pattern)
  })

  test('a command whose working directory leads out of the machine ends and sees nothing of the host', async () => {
    await suite.sh(machine(), 'ln -s /proc/1/root /tmp/led; mkdir -p /srv/here; ln -s /srv/here /tmp/linked')
    const inside = await suite.sh(machine(), 'cat /etc/hostname')
    for (let fd = 3; fd < 16; fd += 1) {
      const said = await suite.sh(machine(), 'cat ../../../../../etc/hostname', {
        cwd: `/proc/self/fd/${fd}`,
      })
      expect([fd, [0, 1, 126].includes(said.exitCode)]).toEqual([fd, true])
      expect(['', inside.stdout]).toContain(said.stdout)
    }
    for (const cwd of ['/no/such', '/etc/passwd', '/proc/self/fd/0']) {
      const said = await suite.exec(machine(), ['pwd'], { cwd })
      expect([cwd, said.exitCode, said.stdout]).toEqual([cwd, 126, ''])
      expect(said.stderr).toContain(cwd)
    }
    expect((await suite.exec(machine(), ['/bin/pwd', '-P'], { cwd: '/tmp/linked' })).stdout).toBe(
      '/srv/here\n',
    )
  })

  test('a path below a file is refused', async () => {
    await suite.sh(machine(), 'echo x > /tmp/plain')
    expect(['file_refused', 'not_a_file']).toContain(await kindOf(write('/tmp/plain/below')))
    expect(await kindOf(read('/tmp/plain/below'))).toBe('file_not_found')
  })

  test('a write keeps the mode and owner of an existing file', async () => {
    await suite.sh(machine(), 'echo x > /tmp/tool; chown 1000:1000 /tmp/tool; chmod 750 /tmp/tool')
    await write('/tmp/tool')
    expect((await suite.sh(machine(), 'stat -c %a:%u:%g /tmp/tool')).stdout).toBe('750:1000:1000\n')
  })

  test('a new file has mode 644, and no temporary file is left', async () => {
    await suite.sh(machine(), 'mkdir /tmp/new')
    await write('/tmp/new/file')
    expect((await suite.sh(machine(), 'stat -c %a /tmp/new/file; ls -A /tmp/new')).stdout).toBe('644\nfile\n')
  })

  test('boot files are written through planted links only within the machine', async () => {
    const canary = await mkdtemp(join(tmpdir(), 'berth-canary-'))
    onTestFinished(async () => await rm(canary, { recursive: true }))
    const ref = await suite.running()
    // Absolute, climbing, and by way of a process: all would end in the host's directory if followed there.
    await suite.sh(ref, `ln -s ${canary} /srv/absolute; ln -s ../../../../../../..${canary} /srv/climbing`)
    await suite.sh(ref, `ln -s /proc/1/root${canary} /srv/process; mkdir -p ${canary}; mkfifo /srv/fifo`)
    await suite.engine().stop(ref, 0)
    for (const [i, directory] of ['absolute', 'climbing', 'process'].entries()) {
      const files = [{ path: `/srv/${directory}/planted`, content: Buffer.from('x') }]
      await outcome(suite.start({ id: ref.id, generation: 2 + i }, { files }))
      await suite.engine().stop({ id: ref.id, generation: 2 + i }, 0)
    }
    const overFifo = { files: [{ path: '/srv/fifo', content: Buffer.from('content') }] }
    const again = await suite.start({ id: ref.id, generation: 10 }, overFifo)
    expect((await suite.engine().readFile(again, '/srv/fifo', 100)).content.toString()).toBe('content')
    expect(await readdir(canary)).toEqual([])
  })

  test('files are read and written safely while the machine swaps what is at their path', async () => {
    const canary = await mkdtemp(join(tmpdir(), 'berth-canary-'))
    onTestFinished(async () => await rm(canary, { recursive: true }))
    await writeFile(join(canary, 'file'), 'of the host')
    // In the machine the same path leads to a file of its own.
    const swap = [
      `mkdir -p ${canary} /tmp/racing; echo inside > ${canary}/file; cd /tmp/racing`,
      'while [ ! -f stop ]; do',
      `rm -rf path; mkdir path; rm -rf path; mkfifo path; rm -f path; ln -s ${canary}/file path; rm -f path`,
      'echo content > path; done',
    ].join('\n')
    const racing = suite.sh(machine(), swap, { timeoutMs: 60_000 })
    for (let round = 0; round < RACES; round += 1) {
      const found = await read('/tmp/racing/path').catch(() => null)
      expect(['content\n', 'inside\n', 'written', '', undefined]).toContain(found?.toString())
      await outcome(write('/tmp/racing/path'))
    }
    await suite.sh(machine(), 'touch /tmp/racing/stop')
    await racing
    expect(await readdir(canary)).toEqual(['file'])
    expect(await readFile(join(canary, 'file'), 'utf8')).toBe('of the host')
  })

  test('files can be read and written in a machine whose own tools were removed', async () => {
    const ref = await suite.running({
      cmd: ['sh', '-c', 'rm -rf /usr/bin/sh /usr/bin/cat /usr/bin/mv; exec sleep infinity'],
    })
    await new Promise((resolve) => setTimeout(resolve, 500))
    const written = await suite.engine().writeFile(ref, '/root/file', Buffer.from('still here'))
    expect(written).toMatchObject({ verified: true })
    expect((await suite.engine().readFile(ref, '/root/file', 100)).content.toString()).toBe('still here')
  })
}
