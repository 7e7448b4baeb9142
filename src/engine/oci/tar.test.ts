import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createTar } from './tar.ts'

const name = fc.stringMatching(/^[a-z0-9 é'"$]{1,60}$/).filter((text) => text.trim() !== '')

it('any files come out of a real tar as they went in', () => {
  const files = fc.uniqueArray(
    fc.record({
      path: fc.array(name, { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join('/')}.f`),
      content: fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes)),
      mode: fc.constantFrom(0o644, 0o755),
    }),
    { maxLength: 6, selector: (file) => file.path },
  )
  fc.assert(
    fc.property(files, (given) => {
      const directory = mkdtempSync(join(tmpdir(), 'berth-tar-'))
      try {
        execFileSync('tar', ['-x', '-C', directory], { input: createTar(given) })
        for (const { path, content, mode } of given) {
          expect(readFileSync(join(directory, path)).equals(content)).toBe(true)
          expect(statSync(join(directory, path)).mode & 0o777).toBe(mode)
        }
      } finally {
        rmSync(directory, { recursive: true })
      }
    }),
    { numRuns: 30 },
  )
})
