// The page on API calls states the order of checks that the program runs.

import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { callSteps } from '../../src/api/operation.ts'

it('docs/architecture/requests.md lists the steps of a call in the order in which they run', async () => {
  const page = await readFile(new URL('../../docs/architecture/requests.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split('## The steps of a call\n')
  const [list = ''] = section.split('\n## ')
  const told = [...list.matchAll(/^\d+\. \*\*(.+?)\*\*/gm)].map(([, name]) => name)
  expect(told).toEqual(callSteps.names)
})
