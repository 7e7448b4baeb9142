import { expect, it } from 'vitest'
import { buildDigest, mainVersion, parseStatus } from './packages.ts'
import { parseSimulation } from './updates.ts'

const status = `Package: zlib1g
Status: install ok installed
Version: 1:1.2.13.dfsg-1
Description: compression
 Version: is no field here

Package: gone
Status: deinstall ok config-files
Version: 9

Package: adduser
Status: install ok installed
Version: 3.134
`

it('parseStatus returns the installed packages only, sorted by name', () => {
  const packages = parseStatus(status)
  expect(Object.entries(packages)).toEqual([
    ['adduser', '3.134'],
    ['zlib1g', '1:1.2.13.dfsg-1'],
  ])
})

it('buildDigest changes with the definition, a package or a version, and is otherwise stable', () => {
  const digest = buildDigest('sha256:a', { adduser: '3.134' })
  expect(buildDigest('sha256:a', { adduser: '3.134' })).toBe(digest)
  const others = [
    buildDigest('sha256:b', { adduser: '3.134' }),
    buildDigest('sha256:a', { adduser: '3.135' }),
    buildDigest('sha256:a', { adduser: '3.134', zlib1g: '1' }),
  ]
  expect(new Set([digest, ...others]).size).toBe(4)
})

it('mainVersion returns the version of the package that the image is named for', () => {
  const packages = { 'postgresql-15': '15.14-0+deb12u1', 'base-files': '12.4+deb12u12', redis: '5:7.0.15-1' }
  expect(mainVersion('15', ['ca-certificates', 'postgresql-15'], packages)).toBe('15.14-0+deb12u1')
  expect(mainVersion('7', ['redis'], packages)).toBe('5:7.0.15-1')
  expect(mainVersion('12', ['curl'], packages)).toBe('12.4+deb12u12')
  expect(mainVersion('3', ['curl'], packages)).toBeNull()
})

it('parseSimulation returns the packages that apt would install or upgrade', () => {
  const simulated = `Reading package lists...
The following packages will be upgraded:
  libssl3 openssl
Inst libssl3 [3.0.15-1~deb12u1] (3.0.17-1~deb12u3 Debian-Security:12/stable-security [amd64]) []
Inst libnew1 (1.0 Debian:12.9/stable [amd64])
Conf libssl3 (3.0.17-1~deb12u3 Debian-Security:12/stable-security [amd64])
`
  expect(parseSimulation(simulated)).toEqual([
    { name: 'libssl3', has: '3.0.15-1~deb12u1', offers: '3.0.17-1~deb12u3' },
    { name: 'libnew1', has: null, offers: '1.0' },
  ])
  expect(parseSimulation('0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.')).toEqual([])
})
