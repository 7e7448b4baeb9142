// Files of a gigabyte through the API of a real Berth, and what each of its processes has in memory meanwhile.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { FileWritten } from '../../src/contract/files.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { isDeep, usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const MB = 1024 * 1024
const PIECE = Buffer.alloc(MB, 'a gigabyte of this. ')
const PIECES = isDeep ? 1024 : 256
/** Buffers of pipes, sockets and frames; a file kept whole is more. */
const MAX_GROWTH = 120 * MB

describe.each(usualClasses)('with %s, a file larger than what a process may keep', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  let unit: Unit
  beforeAll(async () => {
    const image = 'berth.local/debian:12'
    unit = await createUnit(berth, { name: 'files', image, size: 'medium', cmd: ['sleep', 'infinity'] })
  })

  const url = () => `${berth.credentials.baseUrl}/v1/units/${unit.id}/files/content?path=/srv/large`
  const headers = () => ({ authorization: `Bearer ${berth.credentials.apiKey}` })
  const digest = () => {
    const hash = createHash('sha256')
    for (let at = 0; at < PIECES; at += 1) hash.update(PIECE)
    return hash.digest('hex')
  }
  /** The work, and by how much server and engine grew meanwhile at most. */
  async function growthIn(work: () => Promise<void>): Promise<number> {
    const pids = await Promise.all(['server', 'engine'].map((role) => berth.pidOf(role)))
    const memory = async () => await Promise.all(pids.map(residentOf))
    const before = await memory()
    let [most, isOver] = [0, false]
    const watching = (async () => {
      while (!isOver) {
        const now = await memory()
        most = Math.max(most, ...now.map((bytes, index) => bytes - (before[index] ?? 0)))
        await delay(100)
      }
    })()
    await work().finally(() => (isOver = true))
    await watching
    return most
  }
  async function residentOf(pid: number | null): Promise<number> {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
  }

  it('goes in and comes out byte for byte in constant memory', async () => {
    const body = async function* () {
      for (let at = 0; at < PIECES; at += 1) yield PIECE
    }
    const bytes = PIECES * MB
    const grewIn = await growthIn(async () => {
      const init = { method: 'PUT', headers: headers(), body: body(), duplex: 'half' }
      const written = (await (await fetch(url(), init as unknown as RequestInit)).json()) as FileWritten
      expect(written).toEqual({ path: '/srv/large', bytes, sha256: digest(), verified: true })
    })
    const grewOut = await growthIn(async () => {
      const hash = createHash('sha256')
      const answer = await fetch(url(), { headers: headers() })
      for await (const piece of answer.body ?? []) hash.update(piece)
      expect(hash.digest('hex')).toBe(digest())
    })
    expect([grewIn < MAX_GROWTH, grewOut < MAX_GROWTH], `${grewIn} and ${grewOut} bytes`).toEqual([
      true,
      true,
    ])
  })

  it('is not there, nor anything in its place, if its sender goes away half way', async () => {
    const gone = new AbortController()
    const body = async function* () {
      for (let at = 0; at < 8; at += 1) yield PIECE
      gone.abort()
      await new Promise(() => {})
    }
    const other = url().replace('/srv/large', '/srv/cut/file')
    const init = { method: 'PUT', headers: headers(), body: body(), duplex: 'half', signal: gone.signal }
    await expect(fetch(other, init as unknown as RequestInit)).rejects.toThrow()
    await expect.poll(async () => (await exec(berth, unit, ['ls', '-A', '/srv/cut'])).stdout).toBe('')
  })
})
