// `npm run images -- …`: lists, builds, checks and removes images. It uses only the images directory and the
// machines' records, so it works with or without a running Berth.

import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type BuiltIn, referenceOf } from '../engine/oci/images/builtin.ts'
import { type Inventory, type Listed, openInventory } from '../engine/oci/images/inventory.ts'
import { updatesBy } from '../engine/oci/images/updates.ts'
import { registerInstance } from '../engine/oci/images/instances.ts'
import { systemClock } from '../lib/clock.ts'
import { createLog, type Log } from '../lib/log.ts'
import { printError, print } from '../lib/terminal.ts'
import { printable } from '../lib/printable.ts'
import { formatTable } from './table.ts'
import { help, type ImagesCommand, parseCommand, usage } from './images-arguments.ts'
import { findInstance } from '../supervisor/instance.ts'
import { openLogFile } from '../supervisor/log-file.ts'
import { listenForStop } from '../supervisor/stop-signals.ts'

export async function runImagesCommand(config: Config, args: string[]): Promise<number> {
  const command = parseCommand(args)
  if (command.kind === 'help') {
    print(help)
    return 0
  }
  return await withInventory(config, (inventory, log) => perform(inventory, command, log))
}

/** Prints what it does and returns the exit code. */
export async function perform(
  inventory: Inventory,
  command: Exclude<ImagesCommand, { kind: 'help' }>,
  log: Log,
): Promise<number> {
  switch (command.kind) {
    case 'list':
      await printList(inventory, command.json)
      return 0
    case 'check':
      if (!(await check(inventory))) return 1
      await printList(inventory, command.json)
      return 0
    case 'build':
      return await build(inventory, command.definitions, log)
    case 'remove':
      return await remove(inventory, command.named, log)
    case 'remove-unused':
      return await removeUnused(inventory, command.json, log)
  }
}

async function printList(inventory: Inventory, json: boolean): Promise<void> {
  const images = await inventory.list()
  if (json) print(JSON.stringify(images, null, 2))
  else for (const line of tableOf(images)) print(line)
}

function tableOf(images: Listed[]): string[] {
  const heading = ['image', 'digest', 'size', 'made', 'version', 'units', 'condition']
  const rows = images.map(({ reference, digest, bytes, madeAt, version, machines, condition }) => [
    printable(reference),
    digest === null ? '' : digest.slice('sha256:'.length, 19),
    digest === null ? '' : megabytes(bytes),
    madeAt?.toISOString().slice(0, 10) ?? '',
    version ?? '',
    digest === null ? '' : String(machines.length),
    printable(condition),
  ])
  return formatTable([heading, ...rows])
}

/** Returns whether Debian answered. */
async function check(inventory: Inventory): Promise<boolean> {
  try {
    await inventory.check()
    return true
  } catch (error) {
    printError(`Debian could not be asked for updates: ${messageOf(error)}`)
    return false
  }
}

async function build(inventory: Inventory, definitions: BuiltIn[], log: Log): Promise<number> {
  // If Debian does not answer, the image is built from the package versions already known.
  await check(inventory)
  let failures = 0
  for (const definition of definitions) {
    const reference = referenceOf(definition)
    try {
      const built = await inventory.build(definition)
      if (built) log.info({ image: reference }, 'operator built a built-in image')
      else print(`${reference}: is up to date`)
    } catch (error) {
      failures += 1
      printError(`${reference}: ${messageOf(error)}`)
    }
  }
  return failures === 0 ? 0 : 1
}

async function remove(inventory: Inventory, named: string[], log: Log): Promise<number> {
  let stayed = 0
  for (const text of named) {
    const images = findNamed(await inventory.list(), text)
    if (images.length === 0) {
      stayed += 1
      printError(`There is no image "${text}" here; "npm run images -- list" shows them.`)
    }
    for (const { reference, digest } of images) {
      const why = await inventory.remove(digest)
      if (why !== null) {
        stayed += 1
        printError(`${printable(reference)} stays. ${why}`)
        continue
      }
      log.info({ image: reference, digest }, 'the operator removed an image')
      print(`${printable(reference)} (${digest.slice(0, 19)}) is removed.`)
    }
  }
  return stayed === 0 ? 0 : 1
}

async function removeUnused(inventory: Inventory, json: boolean, log: Log): Promise<number> {
  const unknown = await inventory.unknownMachines()
  if (unknown.length > 0)
    throw new Error(`Nothing was removed, because not all units are known: ${unknown.join(' ')}`)
  const removed = await inventory.removeUnused()
  for (const { reference, digest } of removed)
    log.info({ image: reference, digest }, 'the operator removed an image')
  if (json) {
    print(JSON.stringify(removed, null, 2))
    return 0
  }
  for (const { reference, digest, bytes } of removed)
    print(`${printable(reference)} (${digest?.slice(0, 19)}) is removed: ${megabytes(bytes)}.`)
  print(
    `${removed.length} images are removed, ${megabytes(removed.reduce((sum, { bytes }) => sum + bytes, 0))}.`,
  )
  return 0
}

/** Returns the images of a reference, or the one whose digest begins with the text. */
function findNamed(images: Listed[], text: string): (Listed & { digest: string })[] {
  const here = images.flatMap((image) => (image.digest === null ? [] : [{ ...image, digest: image.digest }]))
  const named = here.filter(({ reference }) => reference === text)
  const beginning = /^(?:sha256:)?([0-9a-f]{6,64})$/.exec(text)?.[1]
  if (named.length > 0 || beginning === undefined) return named
  const digests = here.filter(({ digest }) => digest.startsWith(`sha256:${beginning}`))
  if (digests.length > 1) throw usage(`several digests begin with "${beginning}"`)
  return digests
}

/** Throws a sentence for the operator. */
async function withInventory(
  config: Config,
  work: (inventory: Inventory, log: Log) => Promise<number>,
): Promise<number> {
  const { dataDir, imagesDir } = config
  if (process.getuid?.() !== 0) throw new Error('Images belong to root: run the command as root.')
  // Readable by everyone, as at the first start; files in it are readable by root only.
  await mkdir(dataDir, { recursive: true })
  const instance = await findInstance(dataDir)
  const machines = await readdir(join(dataDir, 'machines')).catch(() => [])
  if (instance && machines.length > 0)
    await registerInstance(imagesDir, { id: instance.id, dataDir }, systemClock)
  // Searchable by everyone: apt fetches as a user of its own.
  const scratch = await mkdtemp(join(tmpdir(), 'berth-updates-'))
  await chmod(scratch, 0o711)
  const logFile = await openLogFile(dataDir)
  try {
    const log = createLog('operator', config.logLevel, logFile.descriptor)
    const signal = listenForStop(() => process.exit(1))
    const findUpdates = updatesBy(join(scratch, 'apt'))
    const options = { imagesDir, onProgress: print, findUpdates, signal, clock: systemClock, log }
    return await work(await openInventory(options), log)
  } finally {
    await logFile.close()
    await rm(scratch, { recursive: true, force: true })
  }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`
}

/** The error's message, with the output of the programs that caused it. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return printable(`${message}${cause}`.replace(/\s+/g, ' '))
}
