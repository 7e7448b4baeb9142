// `npm run aside -- …`: lists and removes machines and disks that the database does not know and the engine has put
// aside. It uses only the data directory, so it works with or without a running Berth.

import { parseArgs } from 'node:util'
import type { Config } from '../config.ts'
import { type Aside, askToRemove, listAside } from '../engine/oci/lifecycle/aside.ts'
import { createPaths } from '../engine/oci/paths.ts'
import { createLog } from '../lib/log.ts'
import { print } from '../lib/terminal.ts'
import { formatTable } from './table.ts'
import { openLogFile } from '../supervisor/log-file.ts'

const help = `Machines and disks that the database knows nothing of, kept aside for BERTH_KEEP_ASIDE.

  npm run aside -- list
  npm run aside -- remove UNIT…
      For good, within seconds where Berth runs, else as it starts.

A unit that the database knows again is there again after the next start of Berth, with its disk.`

const reasons = {
  unknown: 'the database knows of no such unit',
  damaged: 'the record of its machine cannot be read',
  'no-record': 'a disk whose machine has no record',
} as const satisfies Record<Aside['reason'], string>

/** Returns the exit code. Throws a sentence for the operator. */
export async function runAsideCommand({ dataDir, logLevel }: Config, args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  })
  const [verb, ...ids] = positionals
  const paths = createPaths({ dataDir, runDir: '' })
  const aside = await listAside(paths)
  if (values.help || verb === undefined) print(help)
  else if (verb === 'list' && ids.length === 0) for (const line of tableOf(aside)) print(line)
  else if (verb === 'remove' && ids.length > 0) {
    const strange = ids.find((id) => !aside.some((each) => each.id === id))
    if (strange !== undefined) throw usage(`nothing named "${strange}" was put aside`)
    const logFile = await openLogFile(dataDir)
    const log = createLog('operator', logLevel, logFile.descriptor)
    for (const id of ids) {
      await askToRemove(paths, id)
      log.info({ machine: id }, 'operator removes a machine that was put aside')
      print(`${id} will be removed.`)
    }
    await logFile.close()
  } else throw usage('use "list", or "remove" and the ids of units')
  return 0
}

function tableOf(aside: Aside[]): string[] {
  const rows = aside.map(({ id, at, reason, isToGo }) => [
    id,
    at.toISOString().slice(0, 16).replace('T', ' '),
    isToGo ? 'is about to be removed' : reasons[reason],
  ])
  return formatTable([['unit', 'since (UTC)', 'why'], ...rows])
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run aside -- --help" shows how it is used.`)
}
