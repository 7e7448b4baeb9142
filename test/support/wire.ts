// Another machine of a Berth, as a network namespace beside this machine's own, with a wire to it.

import { randomBytes } from 'node:crypto'
import { namespacePath } from '../../src/engine/oci/network/names.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { forgetNamespace, noteNamespace } from './instances.ts'

const TIMEOUT_MS = 20_000

export type Wire = {
  /** The namespace, as a path. */
  network: string
  /** The other machine's address on the wire, and this machine's. */
  address: string
  near: string
  set: (state: 'up' | 'down') => Promise<void>
  /** Makes the namespace and the wire. */
  open: () => Promise<void>
  /** Removes both, and with them what was in the namespace. */
  close: () => Promise<void>
}

/** Not there yet. `index`: another one for each wire of a run, from 0 to 63. */
export function nameWire(index: number): Wire {
  const id = `lab${randomBytes(2).toString('hex')}`
  // Of the addresses for documentation, so that no machine's own are among them.
  const addressOf = (last: number) => `198.51.100.${4 * index + last}`
  const ip = async (...args: string[]) => void (await runOrThrow('ip', args, { timeoutMs: TIMEOUT_MS }))
  const inside = async (...args: string[]) => await ip('-n', id, ...args)
  return {
    network: namespacePath(id),
    address: addressOf(2),
    near: addressOf(1),
    set: async (state) => await ip('link', 'set', id, state),
    open: async () => {
      await noteNamespace(id)
      await ip('netns', 'add', id)
      await ip('link', 'add', id, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', id)
      await ip('address', 'add', `${addressOf(1)}/30`, 'dev', id)
      await ip('link', 'set', id, 'up')
      await inside('address', 'add', `${addressOf(2)}/30`, 'dev', 'eth0')
      for (const device of ['eth0', 'lo']) await inside('link', 'set', device, 'up')
      await inside('route', 'add', 'default', 'via', addressOf(1))
    },
    close: async () => {
      await ip('netns', 'delete', id)
      await forgetNamespace(id)
    },
  }
}
