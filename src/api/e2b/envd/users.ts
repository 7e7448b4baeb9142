// Users of a sandbox, as its own list of them says. A client may leave the user out, and may name files from the home of
// the user.

import { posix } from 'node:path'
import type { FileRead } from '../../../contract/files.ts'
import { type Issue, unauthorized, validation } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import { toAppError } from '../../http/errors.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'

export type SandboxUser = { name: string; home: string }

export type SandboxUsers = {
  /** The user that the client names, or the default one. Throws `unauthorized` for one that is not there. */
  of: (call: SandboxCall, named: string | null) => Promise<SandboxUser>
  /** Does `work` as the user that the call names. An image without the default user has root alone. */
  as: <T>(call: SandboxCall, work: (user: string) => Promise<T>) => Promise<T>
}

const DEFAULT_USER = 'user'
const ROOT: SandboxUser = { name: 'root', home: '/root' }
/** Above this number, what is known of the sandbox that was asked first is read again. */
const MAX_KNOWN = 2000

export function createSandboxUsers(): SandboxUsers {
  const known = new Map<string, Map<string, SandboxUser>>()
  const withoutUser = new Set<string>()
  const read = async (call: SandboxCall) => {
    const users = await readUsers(call)
    known.delete(call.unitId)
    known.set(call.unitId, users)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    return users
  }
  return {
    as: async (call, work) => {
      const { unitId, user } = call
      if (user === null && withoutUser.has(unitId)) return await work(ROOT.name)
      try {
        return await work(user ?? DEFAULT_USER)
      } catch (error) {
        if (!isUnknownUser(error)) throw error
        if (user !== null) throw unauthorized(`There is no user "${user}" in the sandbox.`)
        if (withoutUser.size >= MAX_KNOWN) withoutUser.clear()
        withoutUser.add(unitId)
        return await work(ROOT.name)
      }
    },
    of: async (call, named) => {
      const wanted = named ?? DEFAULT_USER
      if (wanted === ROOT.name) return ROOT
      const found = known.get(call.unitId)?.get(wanted) ?? (await read(call)).get(wanted)
      if (found) return found
      if (named === null) return ROOT
      throw unauthorized(`There is no user "${named}" in the sandbox.`)
    },
  }
}

/** As the API refuses a user that is not there. */
function isUnknownUser(error: unknown): boolean {
  const { status, details } = toAppError(error)
  return status === 400 && Array.isArray(details) && details.some(({ path }: Issue) => path === 'user')
}

async function readUsers(call: SandboxCall): Promise<Map<string, SandboxUser>> {
  const lines = (await readPasswd(call)).split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [name = '', , , , , home = ''] = line.split(':')
      return name === '' || !home.startsWith('/') ? [] : [[name, { name, home }]]
    }),
  )
}

/** An image may have none. */
async function readPasswd(call: SandboxCall): Promise<string> {
  const query = { path: '/etc/passwd' }
  try {
    const file = (await operate(call, 'GET /v1/units/{id}/files', { query })) as FileRead
    return Buffer.from(file.contentBase64, 'base64').toString('utf8')
  } catch (error) {
    if (toAppError(error).status !== 404) throw error
    return ''
  }
}

/** An absolute path without `.` and `..`; what is not absolute lies in the user's home. */
export function resolvePath(path: string, { home }: SandboxUser): string {
  if (path.includes('\0') || path.length > limits.pathLength)
    throw validation([{ path: 'path', message: `must be a path of at most ${limits.pathLength} characters` }])
  const inHome = path === '~' || path.startsWith('~/') ? path.replace('~', home) : path
  return posix.resolve(home, inHome)
}
