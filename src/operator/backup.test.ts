import { expect, it } from 'vitest'
import { loadConfig } from '../config.ts'
import { runBackup } from './backup.ts'
import { runRestore } from './restore.ts'

it.each([
  ['backup', runBackup],
  ['restore', runRestore],
])('a %s of a server without units is refused with what to copy instead', async (_what, work) => {
  const config = loadConfig({ BERTH_ROLE: 'server', BERTH_HOSTS_ADDRESS: '0.0.0.0:7077' })
  await expect(work(config, ['/nowhere'])).rejects.toThrow(/pg_dump.*secret\.key.*Secret berth-server/)
})
