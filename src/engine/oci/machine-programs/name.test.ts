import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

// Where any user reaches it.
const directory = mkdtempSync(join(tmpdir(), 'berth-naming-'))
const program = join(directory, 'name')
chmodSync(directory, 0o755)
copyFileSync(join(import.meta.dirname, `name-${process.arch}`), program)
afterAll(() => rmSync(directory, { recursive: true }))

describe('the program that sets a hostname', () => {
  it('sets the name that it reads, and ends with 0', () => {
    const script = '"$0"; echo $?; hostname'
    const { stdout } = spawnSync('unshare', ['--uts', 'sh', '-c', script, program], { input: 'web-1' })
    expect(stdout.toString()).toBe('0\nweb-1\n')
  })

  it('says that it did not, without a name or without the right to set one', () => {
    expect(spawnSync(program, { input: '' }).status).toBe(1)
    const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups', program]
    const moved = spawnSync('unshare', ['--uts', 'setpriv', ...asNobody], { input: 'web-1' })
    expect(moved.status).toBe(1)
    expect(hostname()).not.toBe('web-1')
  })
})
