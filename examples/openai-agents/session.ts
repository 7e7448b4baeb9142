// A unit as the sandbox of an agent of the OpenAI Agents SDK.

import { isBerthError, type Unit } from '@berth/sdk'
import { Manifest, type SandboxSession, type SandboxExecResult } from '@openai/agents-core/sandbox'

const noSuchFile = (error: unknown) => {
  if (isBerthError(error, 'not_found')) return false
  throw error
}

/** The unit is not the session's: who made it destroys it. */
export function unitSession(unit: Unit, { root = '/workspace' }: { root?: string } = {}): SandboxSession {
  const at = (path: string) => (path.startsWith('/') ? path : `${root}/${path}`)
  const exec: NonNullable<SandboxSession['exec']> = async ({ cmd, workdir, shell = 'sh' }) => {
    const startedAt = performance.now()
    const result = await unit.exec([shell, '-c', cmd], { cwd: at(workdir ?? root) })
    const { stdout, stderr, exitCode, timedOut } = result
    const wallTimeSeconds = (performance.now() - startedAt) / 1000
    return { output: stdout + stderr, stdout, stderr, wallTimeSeconds, exitCode: timedOut ? null : exitCode }
  }
  const exists = async (path: string) =>
    await unit.files.archive(at(path)).then(async (archive) => {
      await archive.cancel()
      return true
    }, noSuchFile)
  return {
    state: { manifest: new Manifest({ root }), workspaceReady: true },
    start: async () => void (await unit.exec(['mkdir', '-p', '--', root], { check: true })),
    running: async () => (await unit.refresh()).state === 'running',
    exec,
    execCommand: async (args) => toldOf(await exec(args)),
    readFile: async ({ path }) => await unit.files.read(at(path)),
    listDir: async ({ path }) => {
      const entries = await unit.files.list(at(path)).all()
      return entries.map(({ name, type }) => ({
        name,
        path: `${at(path)}/${name}`,
        type: type === 'directory' ? 'dir' : type === 'file' ? 'file' : 'other',
      }))
    },
    pathExists: async (path) => await exists(path),
    resolveExposedPort: async (port) => {
      const url = new URL(await unit.url(port))
      const isSafe = url.protocol === 'https:'
      return { host: url.hostname, port: Number(url.port) || (isSafe ? 443 : 80), tls: isSafe, url: url.href }
    },
    supportsPty: () => false,
  }
}

const toldOf = ({ exitCode, output }: SandboxExecResult): string =>
  `${exitCode === null ? 'The command ran out of its time.' : `Exit code: ${exitCode}`}\n${output}`
