// A unix socket that one group may connect to. It is bound under another name and gets its owner and mode
// before it is renamed into place, so it is never open to anyone else, and replaces a stale one atomically.

import { chmod, chown, lstat, rename, rm } from 'node:fs/promises'
import { connect, type Server } from 'node:net'

/** Listens at `path`, mode 0660. Throws when another process listens there, or something else is in the way. */
export async function listenForGroup(server: Server, path: string, gid: number): Promise<void> {
  await refuseToReplaceLiving(path)
  const temporary = `${path}.${process.pid}`
  await rm(temporary, { force: true })
  const listening = Promise.withResolvers<void>()
  server.once('error', listening.reject)
  // Without `readableAll` and `writableAll` libuv leaves the mode to the umask; until chmod, only we connect.
  server.listen({ path: temporary }, listening.resolve)
  await listening.promise
  server.off('error', listening.reject)
  await chown(temporary, process.geteuid?.() ?? 0, gid)
  await chmod(temporary, 0o660)
  await rename(temporary, path)
}

/** Removes the socket at `path` unless a newer process has put its own there. */
export async function removeSocket(path: string, inode: bigint): Promise<void> {
  const found = await findStat(path)
  if (found?.ino === inode) await rm(path, { force: true })
}

export async function inodeOf(path: string): Promise<bigint> {
  return (await lstat(path, { bigint: true })).ino
}

async function refuseToReplaceLiving(path: string): Promise<void> {
  const found = await findStat(path)
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path} is in the way and is no socket`)
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
