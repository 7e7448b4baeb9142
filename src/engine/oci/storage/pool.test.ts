import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPaths } from '../paths.ts'
import { openPool } from './pool.ts'

it('openPool throws instead of creating a new pool when the pool is missing but machines exist', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-pool-'))
  const paths = createPaths({ dataDir, runDir: join(dataDir, 'run') })
  await mkdir(join(paths.machines, 'unit_1'), { recursive: true })
  await expect(openPool(paths, 16)).rejects.toThrow(/pool\.btrfs is missing, and 1 machines/)
  expect(await readdir(dataDir)).not.toContain('pool.btrfs')
  await rm(dataDir, { recursive: true })
})
