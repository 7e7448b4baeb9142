// The packages that others install, built for a test, and the CLI as a person starts it.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, vi } from 'vitest'
import cliBuild from '../../packages/cli/rolldown.config.ts'
import { makeTeam, type TestTeam } from './make.ts'
import { type Service, startService } from './service.ts'

const run = promisify(execFile)
export const project = fileURLToPath(new URL('../..', import.meta.url))
export const tsc = join(project, 'node_modules/.bin/tsc')

/** The SDK as an installed package of the directory. */
export async function installSdk(directory: string): Promise<void> {
  const installed = join(directory, 'node_modules/@berth/sdk')
  await mkdir(installed, { recursive: true })
  await copyFile(join(project, 'packages/sdk/package.json'), join(installed, 'package.json'))
  await run(tsc, ['-p', join(project, 'packages/sdk/tsconfig.json'), '--outDir', join(installed, 'dist')])
}

/** Answers the path of the program. */
export async function buildCli(directory: string): Promise<string> {
  const { output: outputs, ...input } = cliBuild
  const [output] = [outputs].flat()
  const bundle = await rolldown(input)
  await bundle.write({ ...output, dir: directory })
  await bundle.close()
  return join(directory, 'berth.js')
}

/** `program`: the path of the CLI. `directory`: a temporary one, for what a test keeps. */
export type CliSetup = { service: Service; team: TestTeam; directory: string; program: string }

/** Builds the CLI and starts a service with one team for the tests of a file. The fields are there once they run. */
export function useCli(): CliSetup {
  // Each step is a process of its own.
  vi.setConfig({ testTimeout: 120_000 })
  const setup = {} as CliSetup
  beforeAll(async () => {
    setup.service = await startService()
    setup.team = await makeTeam(setup.service)
    setup.directory = await mkdtemp(join(tmpdir(), 'berth-cli-'))
    setup.program = await buildCli(join(setup.directory, 'dist'))
  })
  afterAll(async () => {
    vi.resetConfig()
    await setup.service.close()
    await rm(setup.directory, { recursive: true })
  })
  return setup
}

export type Ended = { code: number | null; stdout: string; stderr: string }

export type Cli = {
  child: ChildProcess
  /** What it printed so far. */
  stdout: () => string
  stderr: () => string
  end: () => Promise<Ended>
}

/** Starts it with an environment of its own, in which it finds nothing but what the test gives. */
export function startCli(program: string, args: string[], env: Record<string, string>): Cli {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: '/usr/bin:/bin', BERTH_DATA_DIR: '/nowhere', ...env },
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => void (said.stdout += chunk.toString('utf8')))
  child.stderr.on('data', (chunk: Buffer) => void (said.stderr += chunk.toString('utf8')))
  child.stdin.on('error', () => {})
  const closed = once(child, 'close')
  return {
    child,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    end: async () => {
      const [code] = (await closed) as [number | null]
      return { code, ...said }
    },
  }
}

export async function runCli(
  program: string,
  args: string[],
  env: Record<string, string>,
  input = '',
): Promise<Ended> {
  const cli = startCli(program, args, env)
  cli.child.stdin?.end(input)
  return await cli.end()
}
