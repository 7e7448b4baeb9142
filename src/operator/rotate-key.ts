// `npm run rotate-key`: another key for the file that opens the secrets in the database, beside a running Berth, as root.

import type { Config } from '../config.ts'
import { print } from '../lib/terminal.ts'
import { keyFileIn } from '../processes/channel.ts'
import { rotateKeyFile } from '../processes/data-key.ts'
import { runBesideBerth } from './beside-berth.ts'
import { keptStateOf } from '../supervisor/process-command.ts'

const usage = `npm run rotate-key

Puts another key into the file that opens the secrets in the database. Units and calls go on as before.`

export async function rotateKey(config: Config, args: string[]): Promise<number> {
  const [argument] = args
  if (argument === '--help') {
    print(usage)
    return 0
  }
  if (argument !== undefined) throw new Error(`rotate-key takes nothing, and "${argument}" is something.`)
  const keyFile = keyFileIn(keptStateOf(config.dataDir, 'server'))
  return await runBesideBerth(config, async ({ db, log }) => {
    const { from, to } = await rotateKeyFile({ db, keyFile })
    log.info({ from, to }, 'the key of secrets was rotated')
    print(`${keyFile} holds the key ${to} in place of ${from}, and units and calls go on as before.`)
    print('Back it up. Keep the one before as long as you keep backups of the database from before.')
    return 0
  })
}
