// Berth as a provider of ComputeSDK: sandboxes are units, snapshots are forks that are stopped.

import { defineProvider, type Provider } from '@computesdk/provider'
import { Berth } from '../berth.ts'
import { isBerthError } from '../errors.ts'
import type { Unit } from '../unit.ts'
import { factsBehindLinks } from './paths.ts'

/** Without a URL and a key, those of the environment or of `berth login` are used. */
export type BerthConfig = {
  url?: string
  apiKey?: string
  /** Of sandboxes that name none. */
  image?: string
}

export type UnitSnapshot = {
  id: string
  provider: 'berth'
  createdAt: string
  metadata: { name: string; state: Unit['state'] }
}

/** Stacks keep sandboxes and snapshots apart from each other, and from the other units of the team. */
const SANDBOXES = 'computesdk'
const SNAPSHOTS = 'computesdk-snapshots'

const statuses: Partial<Record<Unit['state'], 'running' | 'error'>> = { running: 'running', error: 'error' }

const open = ({ url, apiKey }: BerthConfig) =>
  new Berth({ ...(url === undefined ? {} : { url }), ...(apiKey === undefined ? {} : { apiKey }) })

const isGone = (error: unknown) => isBerthError(error, 'not_found')

/** Empty where there is no such stack. */
async function unitsIn(config: BerthConfig, stack: string): Promise<Unit[]> {
  const found: Unit[] = []
  try {
    for await (const unit of open(config).units.list({ stack })) found.push(unit)
  } catch (error) {
    if (!isGone(error)) throw error
  }
  return found
}

const snapshotOf = ({ id, name, state, info }: Unit): UnitSnapshot => ({
  id,
  provider: 'berth',
  createdAt: info.createdAt,
  metadata: { name, state },
})

async function destroy(config: BerthConfig, id: string): Promise<void> {
  const unit = await open(config).units.get(id)
  await unit.destroy()
}

/**
 * The provider, for `compute.setConfig({ provider: berth({}) })` of ComputeSDK or by itself. Output of a command is streamed by
 * Berth, so no program of ComputeSDK is put into the unit.
 *
 * @throws BerthError as the calls of Berth do.
 */
export const berth: (config: BerthConfig) => Provider<Unit, never, UnitSnapshot> = defineProvider<
  Unit,
  BerthConfig,
  never,
  UnitSnapshot
>({
  name: 'berth',
  methods: {
    sandbox: {
      create: async (config, { image, templateId, snapshotId, name, envs, signal } = {}) => {
        const client = open(config)
        const chosen = image ?? templateId ?? config.image ?? 'node:22'
        const asked = { stack: SANDBOXES, ...(name === undefined ? {} : { name }), signal }
        const unit =
          snapshotId === undefined
            ? await client.units.create({ ...asked, image: chosen, env: envs ?? {} })
            : await (await (await client.units.get(snapshotId)).fork(asked)).start({ signal })
        return { sandbox: unit, sandboxId: unit.id }
      },
      getById: async (config, id) => {
        const unit = await open(config)
          .units.get(id)
          .catch((error: unknown) => {
            if (isGone(error)) return null
            throw error
          })
        return unit === null || unit.state === 'destroyed' ? null : { sandbox: unit, sandboxId: unit.id }
      },
      list: async (config) =>
        (await unitsIn(config, SANDBOXES)).map((unit) => ({ sandbox: unit, sandboxId: unit.id })),
      destroy,
      runCommand: async (unit, command, { cwd, env, timeout, background } = {}) => {
        const startedAt = performance.now()
        const asked = { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) }
        if (background === true) {
          await unit.processes.start(command, asked)
          return { stdout: '', stderr: '', exitCode: 0, durationMs: performance.now() - startedAt }
        }
        const result = await unit.exec(command, { ...asked, timeoutMs: timeout })
        const { stdout, stderr, exitCode, timedOut } = result
        return {
          stdout,
          stderr,
          exitCode: timedOut ? 124 : exitCode,
          durationMs: performance.now() - startedAt,
        }
      },
      streamCommand: async (unit, command, { cwd, env, timeout, onStdout, onStderr }) => {
        const startedAt = performance.now()
        const asked = { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) }
        const running = unit.spawn(command, { ...asked, timeoutMs: timeout })
        const said = { stdout: '', stderr: '' }
        for await (const { stream, text } of running.output) {
          said[stream] += text
          const tell = stream === 'stdout' ? onStdout : onStderr
          tell?.(text)
        }
        const { exitCode, timedOut } = await running.wait()
        return { ...said, exitCode: timedOut ? 124 : exitCode, durationMs: performance.now() - startedAt }
      },
      getInfo: async (unit) => {
        const { id, info, state } = await unit.refresh()
        const { createdAt, image, name } = info
        const status = statuses[state] ?? 'stopped'
        const metadata = { name, image, state }
        return { id, provider: 'berth', status, createdAt: new Date(createdAt), timeout: 0, metadata }
      },
      getUrl: async (unit, { port }) => await unit.url(port),
      filesystem: {
        readFile: async (unit, path) => await new Response(await unit.files.readStream(path)).text(),
        writeFile: async (unit, path, content) =>
          void (await unit.files.writeStream(path, new TextEncoder().encode(content))),
        mkdir: async (unit, path) => void (await unit.files.makeDirectory(path)),
        readdir: async (unit, path) => {
          const entries = []
          for await (const { name, type, bytes, modifiedAt } of unit.files.list(path))
            entries.push({
              name,
              type: type === 'directory' ? ('directory' as const) : ('file' as const),
              size: bytes,
              modified: new Date(modifiedAt),
            })
          return entries
        },
        exists: async (unit, path) => (await factsBehindLinks(unit, path)) !== null,
        remove: async (unit, path) => void (await unit.files.delete(path, { recursive: true })),
      },
    },
    snapshot: {
      create: async (config, id, { name } = {}) => {
        const source = await open(config).units.get(id)
        const copy = await source.fork({ stack: SNAPSHOTS, ...(name === undefined ? {} : { name }) })
        return snapshotOf(await copy.stop())
      },
      list: async (config, { limit } = {}) =>
        (await unitsIn(config, SNAPSHOTS)).slice(0, limit).map(snapshotOf),
      delete: destroy,
    },
  },
})
