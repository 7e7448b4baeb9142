// Lines of a real build, of which callers see no address and no path of the host.

import { expect, it } from 'vitest'
import { buildLogLine } from './build-log.ts'

it('the log of a build names packages and steps, and no address, proxy or path of the host', () => {
  const lines = [
    'I: using /var/lib/berth/images/work/x as tempdir',
    'I: running apt-get update...',
    'Get:1 http://user:secret@mirror.internal/debian bookworm InRelease [151 kB]',
    'Get:4 http://user:secret@mirror.internal/debian bookworm/main amd64 Packages [8790 kB]',
    'Fetched 9420 kB in 6s (1520 kB/s)',
    'Need to get 29.7 MB of archives.',
    'Get:3 http://user:secret@mirror.internal/debian bookworm/main amd64 libc6 amd64 2.36-9+deb12u14 [2759 kB]',
    'I: extracting archives...',
    '/usr/bin/dpkg --status-fd 12 --unpack /var/lib/berth/images/x/libc6.deb',
    'Preparing to unpack .../libc6_2.36-9+deb12u14_amd64.deb ...',
    'Unpacking libc6:amd64 (2.36-9+deb12u14) ...',
    'Setting up libcap2:amd64 (1:2.66-4+deb12u3+b1) ...',
    'W: Download is performed unsandboxed as root as file http://mirror.internal/x couldn’t be accessed',
    'E: Unable to fetch some archives from http://mirror.internal',
    'I: cleaning package lists and apt cache...',
  ]
  expect(lines.map(buildLogLine).filter((line) => line !== null)).toEqual([
    'Reading the lists of packages',
    'Packages to download: 29.7 MB',
    'Downloading libc6 2.36-9+deb12u14 (2759 kB)',
    'Extracting the essential packages',
    'Unpacking libc6:amd64 2.36-9+deb12u14',
    'Setting up libcap2:amd64 1:2.66-4+deb12u3+b1',
    'Cleaning up',
  ])
})
