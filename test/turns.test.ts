import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { days, filesNotOf } from './support/turns.ts'

const DAYS = Array.from({ length: days }, (_, day) => day)

it('every file that takes turns exists, and runs on one day of a round', () => {
  const left = DAYS.flatMap(filesNotOf)
  const files = [...new Set(left)]
  expect(files.filter((file) => !existsSync(new URL(`../${file}`, import.meta.url)))).toEqual([])
  for (const file of files) expect(left.filter((each) => each === file)).toHaveLength(DAYS.length - 1)
})
