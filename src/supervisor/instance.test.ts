import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findInstance, freeSubnets, loadInstance, nameserversIn } from './instance.ts'

describe('freeSubnets', () => {
  it('excludes subnets that overlap a route, a wider network or an address of the host', () => {
    const free = freeSubnets(['default', '10.1.2.0/24', '10.8.0.0/13', '10.200.0.7', '172.17.0.0/16'])
    expect(free).not.toContain('10.1.0.0/16')
    expect(free).not.toContain('10.8.0.0/16')
    expect(free).not.toContain('10.15.0.0/16')
    expect(free).not.toContain('10.200.0.0/16')
    expect(free).toContain('10.16.0.0/16')
    expect(free).toHaveLength(256 - 1 - 8 - 1)
  })

  it('returns none if all of 10.0.0.0/8 is routed', () => {
    expect(freeSubnets(['10.0.0.0/8'])).toEqual([])
  })
})

describe('nameserversIn', () => {
  it('returns the host’s resolver addresses, so that no machine gets one of them', () => {
    const file =
      '# nameserver 10.9.9.9\nsearch example\nnameserver 10.255.255.53\n nameserver\t10.3.0.2 \nnameserver ::1\n'
    expect(nameserversIn(file)).toEqual(['10.255.255.53', '10.3.0.2'])
    expect(freeSubnets(nameserversIn(file))).toHaveLength(254)
  })
})

describe('loadInstance', () => {
  let dir = ''
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-instance-'))
  })
  afterAll(() => rm(dir, { recursive: true }))

  it('creates an instance once and keeps it', async () => {
    const first = await loadInstance(join(dir, 'new'))
    expect(first.id).toMatch(/^[a-z0-9]{4}$/)
    expect(first.subnet).toMatch(/^10\.\d+\.0\.0\/16$/)
    expect(await loadInstance(join(dir, 'new'))).toEqual(first)
  })

  it('throws for a damaged file instead of creating a new instance', async () => {
    await writeFile(join(dir, 'instance.json'), '{"id":"../x","subnet":"10.1.0.0/16"}')
    await expect(loadInstance(dir)).rejects.toThrow(/is damaged/)
  })

  it.each(['machines/unit_1', 'aside/unit_1', 'pool.btrfs'])(
    'throws if the file is missing but %s exists',
    async (left) => {
      const lost = join(dir, `lost-${left.replace('/', '-')}`)
      await mkdir(join(lost, left), { recursive: true })
      await expect(loadInstance(lost)).rejects.toThrow(/instance\.json is missing/)
      expect(await findInstance(lost)).toBeNull()
    },
  )
})
