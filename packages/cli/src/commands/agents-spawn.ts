// `berth agents spawn`: the hook of a controller that starts a program for each claim (docs/guides/hosted-agents.md).

import { sessionUnits } from '../../../agents/src/session-units.ts'
import { isFullTeam } from '../../../agents/src/serve.ts'
import { spawnWorker } from '../../../agents/src/spawn.ts'
import type { Claim } from '../../../agents/src/claim.ts'
import type { News } from '../../../agents/src/queue.ts'
import { type Args, pairs, UsageError } from '../args.ts'
import { connect, type Context, version } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { clean, note, write } from '../output.ts'
import { planOf, readSecretLine } from './agents.ts'

const vendor = 'spawn'
const ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/

export async function spawn({ args, signal }: Context): Promise<number> {
  const claim = await claimOf(args)
  const pool = args.text('pool') ?? 'default'
  if (!ID.test(pool)) throw new UsageError('--pool is letters, digits and . _ : @ -')
  const berth = connect(args, `berth-agents/${version} ${vendor}/${claim.session}`)
  const plan = planOf(args)
  const tell = ({ session, sentence }: News) => note(clean(`berth ${session ?? pool}: ${sentence}`))
  const units = sessionUnits({ berthFor: () => berth, vendor, environment: pool, plan, tell, signal })
  try {
    const code = await spawnWorker({
      units,
      claim,
      after: args.flag('rm') ? 'destroy' : { sleep: plan.sleep },
      write: async ({ bytes, stream }) => await write(bytes, process[stream]),
      tell,
      signal,
    })
    if (code !== null) return code
  } catch (error) {
    if (!isFullTeam(error)) throw error
    throw new Failure(`There is no room for another unit: ${(error as Error).message}`, {
      exitCode: exitCodes.noRoom,
      hint: 'berth quota',
    })
  }
  throw new Failure('The worker was lost: its unit was stopped, or lost its memory.')
}

async function claimOf(args: Args): Promise<Claim> {
  const session = args.text('session')
  if (session === undefined || !ID.test(session))
    throw new UsageError('--session is the id of the session: letters, digits and . _ : @ -')
  if (args.rest.length === 0)
    throw new UsageError('There is no worker: berth agents spawn --session ID -- CMD…')
  const [file, variable, hosts] = [args.text('token-file'), args.text('token-env'), args.list('token-host')]
  if ((variable === undefined) !== (hosts.length === 0) || (variable !== undefined && file === undefined))
    throw new UsageError('--token-env, --token-host and --token-file belong together')
  const token = file === undefined ? null : await readSecretLine(file)
  if (file !== undefined && token === null) throw new Failure(`The token in ${file} is not one line.`)
  return {
    session,
    cmd: args.rest,
    env: pairs(args.list('env')),
    token,
    brokered: variable === undefined ? null : { variable, hosts },
  }
}
