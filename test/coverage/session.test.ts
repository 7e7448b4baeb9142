// The picture in the README shows what was recorded, and nothing else.

import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { drawSession, type Session } from '../../scripts/session-picture.ts'

const read = async (name: string) =>
  await readFile(new URL(`../../docs/images/${name}`, import.meta.url), 'utf8')

it('the terminal session in the README is drawn from its recording', async () => {
  const session = JSON.parse(await read('session.json')) as Session
  expect(session.steps.every(({ output }) => output !== '')).toBe(true)
  expect(await read('session.svg'), 'run npm run session -- --draw').toBe(drawSession(session))
})
