import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runOrThrow } from '../../../lib/process.ts'
import { removeTree } from './mounts.ts'

const mount = async (...args: string[]) => await runOrThrow('mount', args, { timeoutMs: 10_000 })

it('removeTree unmounts bind mounts, stacked ones included, without deleting the mounted files', async () => {
  const place = await mkdtemp('/var/tmp/berth-mounts-')
  const [kept, ours] = [join(place, 'kept'), join(place, 'a run')]
  await mkdir(join(kept, 'empty'), { recursive: true })
  await writeFile(join(kept, 'file'), 'kept')
  await mkdir(join(ours, 'yard', 'below'), { recursive: true })
  await mount('-t', 'tmpfs', 'berth-test', join(ours, 'yard'))
  await mkdir(join(ours, 'yard', 'groups'))
  await mount('--bind', kept, join(ours, 'yard', 'groups'))
  await mount('--bind', kept, join(ours, 'yard', 'groups'))
  try {
    // A data directory can be reached through a symbolic link.
    await symlink(place, join(place, 'link'))
    await removeTree(join(place, 'link', 'a run'))
    expect(existsSync(ours)).toBe(false)
    expect((await readdir(kept)).toSorted()).toEqual(['empty', 'file'])
    await removeTree(ours)
  } finally {
    await removeTree(ours)
    await rm(place, { recursive: true })
  }
})
