import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cgroupFinding, counterFinding, kernelFinding } from './kernel.ts'

describe('the kernel', () => {
  it('of Debian 12 or later is fine, and an older one gets a warning', () => {
    expect(kernelFinding('6.1.0-37-amd64').state).toBe('ok')
    expect(kernelFinding('6.12.41+deb13-amd64').state).toBe('ok')
    expect(kernelFinding('5.10.0-28-amd64').state).toBe('warn')
  })
})

describe('cgroups', () => {
  let root = ''
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-cgroups-'))
    await makeTree('v2', { 'cgroup.controllers': 'cpuset cpu io memory hugetlb pids rdma misc\n' })
    await makeTree('v2-no-memory', { 'cgroup.controllers': 'cpuset cpu io pids\n' })
    const trees = ['cpu', 'memory', 'pids', 'freezer', 'blkio', 'systemd']
    await makeTree('v1', Object.fromEntries(trees.map((tree) => [`${tree}/cgroup.procs`, ''])))
    await makeTree('v1-no-freezer', {
      'cpu/cgroup.procs': '',
      'memory/cgroup.procs': '',
      'pids/cgroup.procs': '',
    })
  })
  afterAll(() => rm(root, { recursive: true }))

  async function makeTree(name: string, files: Record<string, string>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(root, name, path, '..'), { recursive: true })
      await writeFile(join(root, name, path), content)
    }
  }

  it('are accepted in version 2, as Debian has them', async () => {
    const finding = await cgroupFinding(join(root, 'v2'))
    expect(finding).toEqual({ state: 'ok', detail: expect.stringContaining('version 2') })
  })

  it('are accepted in version 1', async () => {
    const finding = await cgroupFinding(join(root, 'v1'))
    expect(finding).toEqual({ state: 'ok', detail: 'version 1, with cpu, memory, pids, freezer, blkio' })
  })

  it('fail the check without a controller that limits need', async () => {
    expect(await cgroupFinding(join(root, 'v2-no-memory'))).toMatchObject({
      state: 'fail',
      detail: 'version 2, without memory',
    })
    expect(await cgroupFinding(join(root, 'v1-no-freezer'))).toMatchObject({
      state: 'fail',
      detail: 'version 1, without freezer',
    })
  })
})

describe('a kernel counter that units share with the host', () => {
  const counter = { name: 'fs.aio-max-nr', atLeast: 1024, isLow: true, canRaise: false }

  it('is named with the value to set where Berth cannot raise it', () => {
    expect(counterFinding([counter])).toEqual({
      state: 'warn',
      detail: expect.stringContaining('fs.aio-max-nr'),
      advice: expect.stringContaining('fs.aio-max-nr=1024'),
    })
  })

  it('is fine where it is high, or where Berth can raise it', () => {
    expect(counterFinding([{ ...counter, isLow: false }]).state).toBe('ok')
    expect(counterFinding([{ ...counter, canRaise: true }]).state).toBe('ok')
  })
})
