// A unix socket that only one group can connect to. It is bound under a temporary name and gets its owner and mode
// before it is renamed, so it is never open to others, and it replaces a stale socket atomically.

import { chmod, chown, lstat, rename, rm } from 'node:fs/promises'
import { connect, type Server } from 'node:net'

export type Listening = {
  /** Accepts no more connections, lets `end` end the existing ones, and waits until they have ended. */
  close: (end: () => void) => Promise<void>
}

/** Listens at `path` with mode 0660. Throws if another process listens there, or if the path is not a socket. */
export async function listenForGroup(server: Server, path: string, gid: number): Promise<Listening> {
  await refuseToReplaceLiving(path)
  const temporary = `${path}.${process.pid}`
  await rm(temporary, { force: true })
  const listening = Promise.withResolvers<void>()
  server.once('error', listening.reject)
  // Without `readableAll` and `writableAll` libuv leaves the mode to the umask; until chmod, only this user can
  // connect.
  server.listen({ path: temporary }, listening.resolve)
  await listening.promise
  server.off('error', listening.reject)
  await chown(temporary, process.geteuid?.() ?? 0, gid)
  await chmod(temporary, 0o660)
  await rename(temporary, path)
  const { ino } = await lstat(path, { bigint: true })
  return {
    close: async (end) => {
      // A newer process may have replaced the socket.
      if ((await findStat(path))?.ino === ino) await rm(path, { force: true })
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      end()
      await closed
    },
  }
}

async function refuseToReplaceLiving(path: string): Promise<void> {
  const found = await findStat(path)
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path} exists and is not a socket`)
  if (await answers(path)) throw new Error(`another process listens on ${path}`)
}

async function findStat(path: string) {
  return await lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

async function answers(path: string): Promise<boolean> {
  const socket = connect(path)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true))
  socket.once('error', () => resolve(false))
  const answered = await promise
  socket.destroy()
  return answered
}
