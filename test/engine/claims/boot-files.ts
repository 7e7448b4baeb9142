import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

export function bootFileClaims(suite: Suite): void {
  const file = (path: string, content: string) => ({ path, content: Buffer.from(content) })

  test('boot files exist before the first process runs', async () => {
    const ref = await suite.running({
      files: [file('/srv/app/config', 'ready\n')],
      cmd: ['cat', '/srv/app/config'],
    })
    expect(await suite.logged(ref.id, 1)).toMatchObject([{ stream: 'stdout', text: 'ready' }])
  })

  test('boot files are rewritten at each start, whatever happened to them', async () => {
    const ref = await suite.running({ files: [file('/srv/config', 'first')] })
    await suite.sh(ref, 'echo changed > /srv/config; echo mine > /srv/other')
    await suite.engine().stop(ref, 0)
    const again = await suite.start({ id: ref.id, generation: 2 }, { files: [file('/srv/config', 'second')] })
    expect((await suite.sh(again, 'cat /srv/config /srv/other')).stdout).toBe('secondmine\n')
  })

  test('64 boot files with 256 KB in total and arbitrary bytes and names are complete', async () => {
    const files = Array.from({ length: 64 }, (_, i) => ({
      path: `/srv/many/${i} it's "é" ${'n'.repeat(150)}`,
      content: Buffer.alloc(4096, i),
    }))
    const ref = await suite.running({ files })
    for (const { path, content } of [files[0], files[31], files[63]].filter((one) => one !== undefined)) {
      const read = await suite.engine().readFile(ref, path, 10_000)
      expect(read.content.equals(content)).toBe(true)
    }
  })
}
