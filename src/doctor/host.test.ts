// The doctor's findings about the host (reliability S35).

import { describe, expect, it } from 'vitest'
import { mayMount } from '../lib/may-mount.ts'
import { coreFinding, mitigationsFinding, pathFinding, privilegesFinding, swapFinding } from './host.ts'
import { memoryFinding } from './isolation.ts'
import { firewallFinding } from './network.ts'

it('a server that may not mount needs a database of its operator', () => {
  expect(mayMount('CapEff:\t000001ffffffffff\n')).toBe(true)
  expect(mayMount('CapEff:\t00000000a80425fb\n')).toBe(false)
  const url = 'postgresql://db/berth'
  expect(privilegesFinding({ databaseUrl: null }, true).state).toBe('ok')
  expect(privilegesFinding({ databaseUrl: url }, false).state).toBe('ok')
  expect(privilegesFinding({ databaseUrl: null }, false)).toMatchObject({
    state: 'fail',
    advice: expect.stringContaining('DATABASE_URL'),
  })
})

describe('a data directory', () => {
  it('is refused where mount options or kernel tables cannot hold its name', () => {
    for (const path of ['/var/with space', '/var/a,b', '/var/a:b', '/var/a\nb', `/${'x'.repeat(100)}`]) {
      expect(pathFinding(path)).toMatchObject({
        state: 'fail',
        advice: expect.stringContaining('BERTH_DATA_DIR'),
      })
    }
    expect(pathFinding('/var/lib/berth').state).toBe('ok')
  })

  it('is refused on a mount below /tmp, which confined processes do not see', () => {
    const mounts = ['/', '/tmp', '/tmp/disk', '/var/lib/berth'].map(
      (at) => `30 23 8:1 / ${at} rw - ext4 /dev/a rw`,
    )
    for (const path of ['/tmp/disk', '/tmp/disk/berth']) {
      expect(pathFinding(path, mounts.join('\n'))).toMatchObject({
        state: 'fail',
        detail: expect.stringContaining('/tmp/disk'),
        advice: expect.stringContaining('BERTH_DATA_DIR'),
      })
    }
    for (const path of ['/tmp/berth', '/tmp/disk-2', '/var/lib/berth'])
      expect(pathFinding(path, mounts.join('\n')).state).toBe('ok')
  })
})

describe('the doctor warns of', () => {
  it('swap that is on', () => {
    const header = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n'
    expect(swapFinding(header).state).toBe('ok')
    expect(swapFinding(`${header}/dev/sda2 partition 1000 0 -2\n`).state).toBe('warn')
  })

  it('CPU mitigations that are switched off', () => {
    expect(mitigationsFinding('BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet').state).toBe('ok')
    expect(mitigationsFinding('root=/dev/sda1 mitigations=off quiet')).toMatchObject({
      state: 'warn',
      detail: 'switched off (mitigations=off)',
    })
  })

  it('core dumps that are piped to a program of the host', () => {
    expect(coreFinding('core').state).toBe('ok')
    expect(coreFinding('|/usr/lib/systemd/systemd-coredump %P %u')).toMatchObject({
      state: 'warn',
      detail: 'piped to /usr/lib/systemd/systemd-coredump',
    })
  })
})

describe('a firewall beside Berth’s', () => {
  const chain = (table: string, name: string, policy: string) => ({
    chain: { family: 'ip', table, name, hook: 'forward', policy },
  })

  it('is named when it drops forwarded traffic', () => {
    const listed = { nftables: [{ metainfo: {} }, chain('filter', 'FORWARD', 'drop')] }
    expect(firewallFinding(listed)).toMatchObject({
      state: 'warn',
      detail: 'ip filter FORWARD drops forwarded traffic',
    })
  })

  it('is not named when it accepts forwarded traffic', () => {
    const listed = {
      nftables: [chain('filter', 'FORWARD', 'accept'), chain('berth_ab12', 'forward', 'drop')],
    }
    expect(firewallFinding(listed).state).toBe('ok')
  })
})

describe('the finding on the memory of units', () => {
  const finding = (runc: { available: boolean; detail: string }) =>
    memoryFinding({
      capabilities: {
        classes: [{ class: 'runc', available: true, detail: 'runc 1.1.5', memory: runc }],
        defaultClass: 'runc',
        defaultReason: '',
      },
    })

  it('gives the reason why memory is lost', () => {
    expect(finding({ available: false, detail: 'CRIU 3.17.1 could not save a container' })).toMatchObject({
      state: 'warn',
      detail: 'runc loses it (CRIU 3.17.1 could not save a container)',
      advice: expect.stringContaining('BERTH_CRIU'),
    })
  })

  it('is fine where a class keeps memory', () => {
    expect(finding({ available: true, detail: 'CRIU 4.2.1' })).toEqual({
      state: 'ok',
      detail: 'runc keeps it (CRIU 4.2.1)',
    })
  })
})
