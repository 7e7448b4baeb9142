// Processes of a sandbox that was paused for so long that its machine ended, by the official client.

import { NotFoundError } from 'e2b'
import { expect, it } from 'vitest'
import { createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor', BERTH_FROZEN_FOR: '0s' })

it('a process goes on after a long pause: it is listed, attached to and killed by its id', async () => {
  const sandbox = await createSandbox(berth)
  const { commands } = sandbox
  const [long, short] = await Promise.all(
    ['sleep 1000', 'sleep 1001'].map(async (command) => await commands.run(command, { background: true })),
  )
  const pid = long?.pid ?? 0
  expect(await sandbox.pause()).toBe(true)
  await expect(long?.wait()).rejects.toThrow()
  await short?.disconnect()
  await sandbox.connect()
  const listed = (await commands.list()).map((each) => each.pid)
  expect(new Set(listed)).toEqual(new Set([pid, short?.pid]))
  const attached = await commands.connect(pid)
  await expect(commands.sendStdin(pid, 'x')).rejects.toThrow(/not supported/)
  expect(await commands.kill(pid)).toBe(true)
  await expect(attached.wait()).rejects.toThrow('not known')
  expect(await commands.kill(pid)).toBe(false)
  expect((await commands.list()).map((each) => each.pid)).toEqual([short?.pid])
  await expect(commands.connect(4711)).rejects.toThrow(NotFoundError)
  await sandbox.kill()
})
