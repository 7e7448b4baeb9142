// The addresses of units are unique over all hosts of a Berth: each has a subnet of its own, kept in `<dataDir>/fleet/` for
// the hosts that have joined (decisions/joining.md).

import { join } from 'node:path'
import { z } from 'zod'
import { SECOND } from '../../lib/clock.ts'
import { takeLock } from '../../lib/file-lock.ts'
import { readIfThere } from '../../lib/read-if-there.ts'
import { writeDurably } from '../../lib/write-durably.ts'
import { findInstance } from '../instance.ts'
import { Refusal } from './protocol.ts'

/** The host that has a subnet. */
export type Block = { name: string; instance: string; subnet: string }

const blocksSchema = z.array(z.strictObject({ name: z.string(), instance: z.string(), subnet: z.string() }))

/** Of the hosts that have joined. */
export async function listBlocks(dataDir: string): Promise<Block[]> {
  const text = await readIfThere(fileOf(dataDir))
  if (text === null) return []
  try {
    return blocksSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new Error(`${fileOf(dataDir)} is damaged: restore it from a backup.`, { cause })
  }
}

type Asked = Block & {
  /** That the host can take instead of its own. */
  others: string[]
}

/** Returns the subnet that the host is to have. Throws `Refusal` with a sentence if it cannot have any. */
export async function giveBlock(dataDir: string, asked: Asked): Promise<string> {
  return await changeBlocks(dataDir, async (blocks) => {
    const { name, instance, subnet, others } = asked
    const here = await findInstance(dataDir)
    if (here?.id === instance) throw new Refusal("it has the data directory of the server's machine")
    refuseTaken(blocks, asked)
    const rest = blocks.filter((each) => each.name !== name)
    const taken = [...rest.map((each) => each.subnet), ...(here ? [here.subnet] : [])]
    const given = [subnet, ...others].find((each) => !taken.includes(each))
    if (given === undefined) {
      const owner = rest.find((each) => each.subnet === subnet)?.name
      throw new Refusal(
        `the addresses of its units, ${subnet}, are those of ${owner ?? "the server's machine"} too; ` +
          'join it with an empty BERTH_DATA_DIR, which gets others',
      )
    }
    return { blocks: [...rest, { name, instance, subnet: given }], result: given }
  })
}

function refuseTaken(blocks: Block[], { name, instance }: Block): void {
  const same = blocks.find((each) => each.instance === instance && each.name !== name)
  if (same) throw new Refusal(`it has joined as ${same.name}; join it by that name`)
  const named = blocks.find((each) => each.name === name && each.instance !== instance)
  if (named)
    throw new Refusal(
      `${name} is the name of another machine; take another name, or run "npm run hosts -- remove ${name}" first`,
    )
}

/** Returns whether there was one. */
export async function takeBlockBack(dataDir: string, name: string): Promise<boolean> {
  return await changeBlocks(dataDir, async (blocks) => {
    const rest = blocks.filter((each) => each.name !== name)
    return { blocks: rest, result: rest.length < blocks.length }
  })
}

/** The file is locked for some milliseconds. */
const LOCK_TIMEOUT_MS = 5 * SECOND

/** Two doors may be open at once: each waits for the other. */
async function changeBlocks<T>(
  dataDir: string,
  change: (blocks: Block[]) => Promise<{ blocks: Block[]; result: T }>,
): Promise<T> {
  const patience = AbortSignal.timeout(LOCK_TIMEOUT_MS)
  const lock = await takeLock(`${fileOf(dataDir)}.lock`, patience).catch((error: unknown) => {
    throw patience.aborted ? new Refusal('another host is joining at this moment; try again') : error
  })
  try {
    const { blocks, result } = await change(await listBlocks(dataDir))
    await writeDurably(fileOf(dataDir), `${JSON.stringify(blocks)}\n`)
    return result
  } finally {
    await lock.release()
  }
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'fleet', 'hosts.json')
}
