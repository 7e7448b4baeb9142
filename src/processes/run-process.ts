// The frame of every process: reads its settings, reports to the supervisor, and stops on SIGTERM. An unhandled error
// ends the process, and the supervisor restarts it.

import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import { createLog, type Log } from '../lib/log.ts'
import { ALIVE_EVERY_MS, type ProcessInput, type ProcessName, type ProcessReport } from './channel.ts'

export type ProcessContext = ProcessInput & {
  log: Log
  progress: (text: string) => void
  /** Tells the supervisor that another process is needed. */
  needs: (process: 'egress') => void
  /** Tells the supervisor that this server leads, until it ends. */
  leads: () => void
  /** Ends the process at once, because its work must not go on. */
  end: (why: string) => never
}
export type StartedProcess = { result?: unknown; stop(): Promise<void> }
export type ProcessMain = (context: ProcessContext) => Promise<StartedProcess>

/** Runs the process until SIGTERM. Ends the process itself. */
export async function runProcess(name: ProcessName, start: ProcessMain): Promise<never> {
  const input = await readInput()
  if (input.warmUp) return endWarmUp()
  const log = createLog(logNameOf(name, input), input.config.logLevel)
  const crash = (error: unknown) => {
    log.fatal({ error: describe(error) }, 'unhandled error')
    process.exit(1)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)

  const stopAsked = new Promise<void>((resolve) => process.once('SIGTERM', () => resolve()))
  try {
    const end = (why: string): never => {
      log.error({ error: why }, 'process ends because of an error')
      process.exit(1)
    }
    const started = await start({
      ...input,
      log,
      progress: (text) => report({ kind: 'progress', text }),
      needs: (needed) => report({ kind: 'needs', process: needed }),
      leads: () => report({ kind: 'leads' }),
      end,
    })
    report({ kind: 'ready', result: started.result ?? null })
    flushCompileCache()
    const alive = setInterval(() => report({ kind: 'alive' }), ALIVE_EVERY_MS)
    await stopAsked
    clearInterval(alive)
    await started.stop()
    process.exit(0)
  } catch (error) {
    log.error({ error: describe(error) }, 'process ends because of an error')
    report({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
    process.exit(1)
  }
}

function logNameOf(name: ProcessName, { worker }: ProcessInput): string {
  return worker === null || worker.number === 0 ? name : `${name} ${worker.number}`
}

async function readInput(): Promise<ProcessInput> {
  for await (const line of createInterface({ input: process.stdin })) {
    // The supervisor wrote this line, from settings it has checked.
    return JSON.parse(line) as ProcessInput
  }
  throw new Error('This process is started by the supervisor, which sends it its settings: run "npm start".')
}

/** Everything is loaded by now: only the compiled code has to be cached. */
function endWarmUp(): never {
  flushCompileCache()
  process.exit(0)
}

function report(message: ProcessReport): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
