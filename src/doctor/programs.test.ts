import { describe, expect, it } from 'vitest'
import { isOlder } from '../lib/versions.ts'
import { presenceOf, programs, versionIn } from './programs.ts'

/** What Debian 12's programs print. */
const printed = {
  runc: 'runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev\ngo: go1.19.8\n',
  runsc: 'runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n',
  conmon: 'conmon version 2.1.6\ncommit: unknown\n',
  skopeo: 'skopeo version 1.9.3\n',
  umoci: 'umoci version 0.4.7+ds-3+b7\n',
  bwrap: 'bubblewrap 0.8.0\n',
  btrfs: 'btrfs-progs v6.2\n',
  nft: 'nftables v1.0.6 (Lester Gooch #5)\n',
  ip: 'ip utility, iproute2-6.1.0, libbpf 1.1.2\n',
  busybox: 'BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.\n',
  mmdebstrap: 'mmdebstrap 1.3.5\n',
}

describe('a program’s version', () => {
  it.each(programs.map(({ command, minimum }) => ({ command, minimum })))(
    'is found in the output of Debian 12’s $command, and is recent enough',
    ({ command, minimum }) => {
      const version = versionIn(printed[command])
      expect(version).not.toBeNull()
      expect(isOlder(version ?? '', minimum)).toBe(false)
    },
  )

  it('is too old for the gVisor of Debian 12 without backports', () => {
    expect(isOlder(versionIn('runsc version 0.0~20221219.0\n') ?? '', '20240729')).toBe(true)
  })

  it('is read from an official gVisor release', () => {
    expect(versionIn('runsc version release-20260105.0\n')).toBe('20260105.0')
  })

  it('is compared number by number', () => {
    expect(isOlder('1.9', '1.10')).toBe(true)
    expect(isOlder('1.10', '1.9')).toBe(false)
    expect(isOlder('2', '1.9.9')).toBe(false)
    expect(isOlder('1.1', '1.1.5')).toBe(true)
  })

  it('is null where the output has none', () => {
    expect(versionIn('no such thing')).toBeNull()
  })
})

describe('a program without which Berth cannot start', () => {
  it('is named with its Debian package if it is not installed', async () => {
    const absent = { command: 'berth-no-such-program', args: [], package: 'some-package', minimum: '1' }
    expect(await presenceOf(absent)).toEqual({
      state: 'fail',
      detail: 'not installed',
      advice: 'Run "npm run setup", or install the Debian package some-package.',
    })
    expect(await presenceOf({ ...absent, command: 'sh' })).toMatchObject({ state: 'ok' })
  })
})
