import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HOUR, systemClock } from '../../../lib/clock.ts'
import { watchWrites } from './writes.ts'

it('a wait for writes ends once a file of the directory is written or made, or the signal aborts', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'writes-'))
  const writes = watchWrites(systemClock, directory)
  const gone = new AbortController()
  try {
    const made = writes.next(HOUR, gone.signal)
    await writeFile(join(directory, '1.log'), 'one\n')
    await made
    const written = writes.next(HOUR, gone.signal)
    await appendFile(join(directory, '1.log'), 'two\n')
    await written
    // Events of the two writes may still be under way: each ends one wait at most.
    const aborted = (async () => {
      while (!gone.signal.aborted) await writes.next(HOUR, gone.signal)
    })()
    gone.abort()
    await aborted
  } finally {
    writes.close()
    await rm(directory, { recursive: true })
  }
})

it('a directory that is not there is waited for as long as asked', async () => {
  const writes = watchWrites(systemClock, '/nowhere/at/all')
  await writes.next(1, new AbortController().signal)
  expect(() => writes.close()).not.toThrow()
})
