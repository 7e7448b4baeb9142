// The methods of the service `filesystem.Filesystem`.

import type { JsonValue } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import type { DirectoryList, DirectoryMade } from '../../../contract/files.ts'
import { limits } from '../../../contract/limits.ts'
import { parse } from '../../../contract/parse.ts'
import { listDirectory } from '../../../domain/units/directories.ts'
import { toAppError } from '../../http/errors.ts'
import { operate, checkRuns, type SandboxCall } from '../sandbox-call.ts'
import { entriesOf, entryAt } from './entries.ts'
import { moveFileMetadata } from './file-metadata.ts'
import { withKeepalive } from './keepalive.ts'
import { ownRoute } from './own-route.ts'
import type { Answer, Methods } from './rpc.ts'
import { resolvePath, type SandboxUser, type SandboxUsers } from './users.ts'
import { createWatchers, toEvent, watch, type Watched } from './watch.ts'

const pathSchema = z.object({ path: z.string().default('') })
const moveSchema = z.object({ source: z.string().min(1), destination: z.string().min(1) })
const listSchema = z.object({ path: z.string().default(''), depth: z.int().default(1) })

const watchSchema = z.object({
  path: z.string().default(''),
  recursive: z.boolean().default(false),
  includeEntry: z.boolean().default(false),
})
const watcherSchema = z.object({ watcherId: z.string().default('') })

/** A call about files, as the user that it is for. */
type AsUser = { call: SandboxCall; user: SandboxUser }

export function filesystemMethods(users: SandboxUsers): Methods {
  const watchers = createWatchers()
  const asUser = async (call: SandboxCall): Promise<AsUser> => {
    await checkRuns(call)
    return { call, user: await users.of(call, call.user) }
  }
  const one = (answer: (input: JsonValue, as: AsUser) => Promise<Answer>): Methods[string] => ({
    kind: 'one',
    answer: async (input, call) => await answer(input, await asUser(call)),
  })
  return {
    Stat: one(async (input, { call, user }) => {
      const { path } = parse(pathSchema, input)
      return { entry: await entryAt(call, resolvePath(path, user)) }
    }),
    MakeDir: one(async (input, as) => await makeDir(parse(pathSchema, input).path, as)),
    Move: one(async (input, { call, user }) => {
      const { source, destination } = parse(moveSchema, input)
      const [path, to] = [resolvePath(source, user), resolvePath(destination, user)]
      await operate(call, 'POST /v1/units/{id}/files/move', { body: { path, to, user: user.name } })
      await moveFileMetadata(call, path, to)
      return { entry: await entryAt(call, to) }
    }),
    ListDir: one(async (input, as) => ({ entries: await listDir(parse(listSchema, input), as) })),
    Remove: one(async (input, as) => await remove(parse(pathSchema, input).path, as)),
    WatchDir: {
      kind: 'answers',
      answers: async function* (input, call) {
        const watched = watchedBy(input, await asUser(call))
        for await (const told of withKeepalive(call, watch(call, watched, call.signal))) {
          if (told === 'keepalive') yield { keepalive: {} }
          else if (told.kind === 'ready') yield { start: {} }
          else yield { filesystem: await toEvent(call, watched, told.change) }
        }
      },
    },
    CreateWatcher: one(async (input, as) => ({
      watcherId: await watchers.create(as.call, watchedBy(input, as)),
    })),
    GetWatcherEvents: {
      kind: 'one',
      answer: async (input, call) => {
        const { watcherId } = parse(watcherSchema, input)
        let events: Answer[] = []
        await poll(call, watcherId, async () => {
          events = await watchers.take(call, watcherId)
        })
        return { events }
      },
    },
    RemoveWatcher: {
      kind: 'one',
      answer: async (input, call) => {
        const { watcherId } = parse(watcherSchema, input)
        await poll(call, watcherId, async () => watchers.remove(call, watcherId))
        return {}
      },
    },
  }
}

function watchedBy(input: JsonValue, { user }: AsUser): Watched {
  const { path, ...how } = parse(watchSchema, input)
  return { path: resolvePath(path, user), ...how }
}

async function poll(call: SandboxCall, watcherId: string, act: () => Promise<void>): Promise<void> {
  const record = { watcherId: watcherId.slice(0, 64) }
  await operate(call, ownRoute({ action: 'unit.file.changes', kind: 'read', record }, act), {})
}

async function makeDir(asked: string, { call, user }: AsUser): Promise<Answer> {
  const path = resolvePath(asked, user)
  const body = { path, user: user.name }
  const { made } = (await operate(call, 'POST /v1/units/{id}/directory', { body })) as DirectoryMade
  if (!made) throw new ConnectError(`${path} exists already`, Code.AlreadyExists)
  return { entry: await entryAt(call, path) }
}

async function listDir(
  { path: asked, depth }: z.output<typeof listSchema>,
  { call, user }: AsUser,
): Promise<Answer[]> {
  const path = resolvePath(asked, user)
  const levels = Math.min(Math.max(1, depth), limits.directoryDepth)
  const { app, sender, unitId } = call
  const asking = { path, depth: levels, limit: limits.directoryEntries }
  const lists: DirectoryList[] = []
  // At once: for each page of the API, the whole directory is looked through.
  const look = async () => void lists.push(await listDirectory(app, sender.caller, unitId, asking))
  const record = { path, depth: levels }
  await operate(call, ownRoute({ action: 'unit.directory.list', kind: 'read', record }, look), {})
  const [list] = lists
  if (!list) throw new TypeError('an operation was answered and not done')
  if (list.truncated)
    throw new ConnectError(`${path} has more than ${limits.directoryEntries} entries`, Code.ResourceExhausted)
  if (depth > levels && list.entries.some((entry) => isDeepest(entry, levels)))
    throw validation([{ path: 'depth', message: `must be at most ${limits.directoryDepth}` }])
  return await entriesOf(call, path, list.entries)
}

/** A directory in which the list does not look. */
function isDeepest({ type, name }: DirectoryList['entries'][number], levels: number): boolean {
  return type === 'directory' && name.split('/').length === levels
}

/** What is not there needs no removal. */
async function remove(asked: string, { call, user }: AsUser): Promise<Answer> {
  const path = resolvePath(asked, user)
  const query = { path, recursive: 'true' }
  try {
    await operate(call, 'DELETE /v1/units/{id}/files', { query })
    await moveFileMetadata(call, path, null)
  } catch (error) {
    if (toAppError(error).status !== 404) throw error
  }
  return {}
}
