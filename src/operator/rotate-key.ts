// `npm run rotate-key`: replaces the key file that encrypts the secrets in the database, while Berth runs, as root.

import type { Config } from '../config.ts'
import { print } from '../lib/terminal.ts'
import { keyFileIn } from '../processes/channel.ts'
import { runBesideBerth } from './beside-berth.ts'
import { rotateKeyFromPod } from '../supervisor/kubernetes/part.ts'
import { keptStateOf } from '../supervisor/process-command.ts'

const usage = `npm run rotate-key

Puts another key into the file that opens the secrets in the database. Units and calls go on as before.`

export async function rotateKey(config: Config, args: string[]): Promise<number> {
  const [argument] = args
  if (argument === '--help') {
    print(usage)
    return 0
  }
  if (argument !== undefined) throw new Error(`rotate-key takes no argument, but got "${argument}".`)
  const keyFile = keyFileIn(keptStateOf(config.dataDir, 'server'))
  return await runBesideBerth(config, async ({ db, log }) => {
    const { from, to } = await rotateKeyFromPod({ config, db, keyFile })
    log.info({ from, to }, 'operator rotated the key of secrets')
    print(`${keyFile} now holds the key ${to} instead of ${from}. Units and calls go on as before.`)
    if (config.serverAddress)
      print(
        config.kubernetes
          ? 'So does the Secret berth-server, from which the other servers have it within 20 s.'
          : 'Copy it to the same path of the other server now: that one cannot take over without it.',
      )
    print('Back it up. Keep the old key as long as you keep older backups of the database.')
    return 0
  })
}
