import { closeSync, openSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createLog } from './log.ts'
import { openLogDestination } from './log-destination.ts'

// Reliability F17.
it('a logger whose disk is full throws no exception, neither in the caller nor later', async () => {
  const full = openSync('/dev/full', 'w')
  const problems: unknown[] = []
  const onProblem = (error: unknown) => problems.push(error)
  process.on('uncaughtException', onProblem)
  try {
    const log = createLog('test', 'info', full)
    for (let line = 0; line < 100; line += 1) log.info('one line of many')
    await new Promise((resolve) => setImmediate(resolve))
    expect(problems).toEqual([])
  } finally {
    process.off('uncaughtException', onProblem)
    closeSync(full)
  }
})

it('once there is space again, the log reports the number of dropped lines on a line of its own', () => {
  let space = 8
  let text = ''
  const write = (_fd: number, bytes: Buffer) => {
    const taken = bytes.subarray(0, space)
    if (taken.length === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    space -= taken.length
    text += taken.toString()
    return taken.length
  }
  const log = openLogDestination(-1, write)
  log.write('first\n')
  log.write('torn apart\n')
  log.write('never seen\n')
  space = 1000
  log.write('last\n')
  const [first, torn, dropped = '', last] = text.split('\n')
  expect([first, torn, last]).toEqual(['first', 'to', 'last'])
  expect(JSON.parse(dropped)).toMatchObject({ level: 40, dropped: 2, msg: expect.stringMatching(/dropped/) })
})
