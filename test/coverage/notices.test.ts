// THIRD_PARTY_NOTICES.md names what the lock file installs.

import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { notedPackages } from '../../scripts/noted-packages.ts'

const read = async (path: string) => await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

it('the notices list every package that Berth runs with, with its version and licence', async () => {
  const [notices, lockfile] = await Promise.all([read('THIRD_PARTY_NOTICES.md'), read('package-lock.json')])
  const packages = notedPackages(lockfile)
  expect(packages.length).toBeGreaterThan(50)
  const lines = packages.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`)
  const listed = notices.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| package'))
  expect(listed, 'run npm run notices').toEqual(lines)
})

it('every package that Berth runs with has a permissive licence, or is a listed exception', async () => {
  const free = new Set([
    'MIT',
    'Apache-2.0',
    'BSD-3-Clause',
    'ISC',
    'MIT-0',
    '0BSD',
    'Unlicense',
    '(Apache-2.0 AND BSD-3-Clause)',
  ])
  // One is served unchanged, with its licence in the notices; one is a tool of the build, of which nothing is distributed;
  // one is a program that goes into units unchanged.
  const known = /^(?:@fontsource-variable\/inter OFL-1\.1|lightningcss\S* MPL-2\.0|npm Artistic-2\.0)$/
  const others = notedPackages(await read('package-lock.json')).filter(
    ({ name, licence }) => !free.has(licence) && !known.test(`${name} ${licence}`),
  )
  expect(others).toEqual([])
})
